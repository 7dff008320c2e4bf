package clientconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
)

const hostCheckKey = "ssl.endpoint.identification.algorithm"

// The properties of TLS whose values are stores, or stand in for them.
var (
	// TrustKeys say which authorities to trust.
	TrustKeys = []string{"ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password", "ssl.truststore.certificates"}
	// IdentityKeys say which certificate to present.
	IdentityKeys = []string{"ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password", "ssl.keystore.certificate.chain",
		"ssl.keystore.key", "ssl.key.password"}
)

// tls makes the settings of TLS.
func (p *Properties) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if c.RootCAs, err = p.trusted(); err != nil {
		return nil, err
	}
	identity, err := p.identity()
	if err != nil {
		return nil, err
	}
	if identity != nil {
		c.Certificates = []tls.Certificate{*identity}
	}
	algorithm := strings.ToLower(p.get(hostCheckKey))
	switch {
	case algorithm == "https" || !p.has(hostCheckKey):
	case algorithm == "":
		checkChainOnly(c)
	default:
		return nil, p.errorf(hostCheckKey, "it is %q: want https, or nothing to trust a certificate whatever host it names", algorithm)
	}
	return c, nil
}

// checkChainOnly trusts a certificate by its authority, whatever host it names.
func checkChainOnly(c *tls.Config) {
	c.InsecureSkipVerify = true // replaced by the function below
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("the broker has no certificate")
		}
		intermediates := x509.NewCertPool()
		for _, cert := range s.PeerCertificates[1:] {
			intermediates.AddCert(cert)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: c.RootCAs, Intermediates: intermediates})
		return err
	}
}

// trusted are the authorities, nil for those of the system.
func (p *Properties) trusted() (*x509.CertPool, error) {
	s, err := p.store("ssl.truststore.", "ssl.truststore.certificates")
	if err != nil || s == nil {
		return nil, err
	}
	certificates, err := s.trusted(p.secret("ssl.truststore.password"))
	if err != nil {
		return nil, p.errorf(s.key, "%w", err)
	}
	pool := x509.NewCertPool()
	for _, c := range certificates {
		pool.AddCert(c)
	}
	return pool, nil
}

// identity is the certificate that the client presents, nil for none.
func (p *Properties) identity() (*tls.Certificate, error) {
	const chainKey, keyKey = "ssl.keystore.certificate.chain", "ssl.keystore.key"
	if (p.get(chainKey) == "") != (p.get(keyKey) == "") {
		return nil, p.errorf(chainKey, "it goes with %s: both or none", keyKey)
	}
	s, err := p.store("ssl.keystore.", chainKey)
	if err != nil || s == nil {
		return nil, err
	}
	if s.key == chainKey {
		s.content += "\n" + p.get(keyKey)
	}
	identity, err := s.identity(p.secret("ssl.keystore.password"), p.secret("ssl.key.password"))
	if err != nil {
		return nil, p.errorf(s.key, "%w", err)
	}
	return identity, nil
}

// store reads the store that the properties with a prefix name, or that stands in one of them as PEM. Neither is nil.
func (p *Properties) store(prefix, inline string) (*store, error) {
	location, text := p.get(prefix+"location"), p.get(inline)
	declared := strings.ToUpper(p.get(prefix + "type"))
	s := &store{key: inline, content: text}
	switch {
	case location == "" && text == "":
		return nil, nil
	case location != "" && text != "":
		return nil, p.errorf(inline, "it goes without %slocation: which of both is meant?", prefix)
	case location != "":
		content, err := os.ReadFile(location)
		if err != nil {
			return nil, p.errorf(prefix+"location", "%w", err)
		}
		s = &store{key: prefix + "location", name: location, content: string(content)}
	}
	if err := s.detect(declared); err != nil {
		return nil, p.errorf(prefix+"type", "%w", err)
	}
	return s, nil
}
