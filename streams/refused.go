package streams

import (
	"crypto/tls"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
)

// refused tells a failure to connect that another attempt does not mend: the brokers do not accept who we are, or we do not
// accept their certificate. Brokers that are away, or close the connection without a word, may come back.
func refused(err error) bool {
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	return certificate || errors.Is(err, kerr.SaslAuthenticationFailed) || errors.Is(err, kerr.UnsupportedSaslMechanism) ||
		errors.Is(err, kerr.IllegalSaslState)
}
