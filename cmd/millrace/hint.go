package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// hinted is an error with what to do about it.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// hint is what to do about an error, "" if that is not known.
func hint(err error) string {
	if h, ok := errors.AsType[hinted](err); ok {
		return h.hint
	}
	return ""
}

// explain adds to an error of a client what to do about it.
func (f *brokerFlags) explain(err error) error {
	if hint(err) != "" {
		return err
	}
	for _, explain := range []func(error) string{f.explainSASL, f.explainACL, f.explainTLS, f.explainNetwork} {
		if hint := explain(err); hint != "" {
			return hinted{err, hint}
		}
	}
	return err
}

func (f *brokerFlags) explainSASL(err error) string {
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return fmt.Sprintf("the brokers refuse the user %q with %s: check name, password and mechanism", f.connection.User, f.connection.SASL.Name())
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return fmt.Sprintf("the brokers do not have %s at this port: choose another of PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 (-sasl-mechanism, sasl.mechanism)",
			f.connection.SASL.Name())
	case errors.Is(err, kerr.IllegalSaslState):
		return "the brokers want no SASL at this port: leave it out, or choose another port"
	}
	return ""
}

func (f *brokerFlags) explainACL(err error) string {
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return fmt.Sprintf("%s lacks an ACL: the operation DESCRIBE on the group to look, READ to remove members; for example "+
			"kafka-acls --bootstrap-server %s --add --allow-principal User:%s --operation READ --group %s",
			f.who(), f.brokers, cmp.Or(f.connection.User, "NAME"), f.group)
	case errors.Is(err, kerr.ClusterAuthorizationFailed), errors.Is(err, kerr.TopicAuthorizationFailed):
		return f.who() + " lacks an ACL"
	}
	return ""
}

// who is as whom the brokers see us.
func (f *brokerFlags) who() string {
	switch {
	case f.connection.User != "":
		return fmt.Sprintf("the user %q", f.connection.User)
	case f.connection.TLS != nil && len(f.connection.TLS.Certificates) > 0:
		return "the principal of the client's certificate"
	}
	return "the anonymous user"
}

func (f *brokerFlags) explainTLS(err error) string {
	const useTLS = "-tls or -tls-ca, or security.protocol=SSL or SASL_SSL in -command-config"
	c := f.connection
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		if c.TLS != nil && c.TLS.RootCAs != nil {
			return "the authorities in the file are not those of the brokers: check -tls-ca or ssl.truststore.location"
		}
		return "name the file with the brokers' authority: -tls-ca, or ssl.truststore.location in -command-config"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "connect by a name that the certificate has; ssl.endpoint.identification.algorithm= (empty) in -command-config turns this check off"
	}
	if _, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return "the brokers' certificate, or this machine's clock, is wrong"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the brokers speak no TLS at this port: leave it out, or choose another port"
	}
	switch text := err.Error(); {
	case strings.Contains(text, "tls alert record"): // the client has no error type for it
		return "the brokers speak TLS at this port: " + useTLS
	case strings.Contains(text, "remote error: tls:") && (c.TLS == nil || len(c.TLS.Certificates) == 0):
		return "the brokers want a client certificate at this port: -tls-cert and -tls-key, or ssl.keystore.location in -command-config"
	case strings.Contains(text, "remote error: tls:"):
		return "the brokers refuse the client's certificate: is it of an authority that they trust?"
	}
	if _, ok := errors.AsType[*kgo.ErrFirstReadEOF](err); !ok {
		return ""
	}
	switch {
	case c.TLS == nil && c.SASL == nil:
		return "do the brokers want TLS at this port (" + useTLS + "), or SASL (-sasl-mechanism, or security.protocol=SASL_PLAINTEXT)?"
	case c.TLS == nil:
		return "do the brokers want TLS at this port (" + useTLS + ")?"
	case c.SASL == nil:
		return "do the brokers want SASL at this port (-sasl-mechanism, or security.protocol=SASL_SSL), or no TLS?"
	}
	return "the brokers may speak no TLS, or want no SASL, at this port"
}

func (f *brokerFlags) explainNetwork(err error) string {
	_, noName := errors.AsType[*net.DNSError](err)
	late, isLate := errors.AsType[net.Error](err)
	switch {
	case noName:
		return "check the names in -brokers, and advertised.listeners of the brokers"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: is the broker down, or the port wrong?"
	case isLate && late.Timeout():
		return fmt.Sprintf("there was no answer in time (-timeout is %v; request.timeout.ms): is a broker down, or a firewall between?", f.timeout)
	case errors.Is(err, kerr.CoordinatorNotAvailable):
		return "the partition of __consumer_offsets that the group belongs to has no leader: are brokers down?"
	}
	return ""
}
