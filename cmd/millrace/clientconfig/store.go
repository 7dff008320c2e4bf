package clientconfig

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"software.sslmate.com/src/go-pkcs12"
)

// The values of ssl.truststore.type and ssl.keystore.type.
const (
	typePEM    = "PEM"
	typePKCS12 = "PKCS12"
	typeJKS    = "JKS"
)

// store is a trust store or a key store.
type store struct {
	key     string // the property that it comes from
	name    string // of its file
	content string
	kind    string
}

// detect finds what the content is. Kafka's default type is JKS, which in Java opens PKCS12 too.
func (s *store) detect(declared string) error {
	switch {
	case strings.HasPrefix(s.content, "\xfe\xed\xfe\xed"):
		return fmt.Errorf("%s is a Java key store of the type JKS, which is not supported; convert it: "+
			"keytool -importkeystore -srckeystore %s -destkeystore %s.p12 -deststoretype PKCS12", s.name, s.name, strings.TrimSuffix(s.name, ".jks"))
	case strings.Contains(s.content, "-----BEGIN "):
		s.kind = typePEM
	case strings.HasPrefix(s.content, "\x30"): // a sequence, which PKCS12 begins with
		s.kind = typePKCS12
	default:
		return fmt.Errorf("%s is neither PEM nor PKCS12", s)
	}
	switch {
	case declared == "" || declared == s.kind, declared == typeJKS && s.kind == typePKCS12:
		return nil
	case declared != typePEM && declared != typePKCS12 && declared != typeJKS:
		return fmt.Errorf("it is %q: want PEM or PKCS12", declared)
	}
	return fmt.Errorf("it is %s, but %s is %s", declared, s, s.kind)
}

// String is the name of the file, or of the property.
func (s *store) String() string { return cmp.Or(s.name, s.key) }

// trusted are the certificates of a trust store.
func (s *store) trusted(password string) ([]*x509.Certificate, error) {
	if s.kind == typePKCS12 {
		certificates, err := pkcs12.DecodeTrustStore([]byte(s.content), password)
		if err == nil && len(certificates) == 0 {
			err = errors.New("it has no trusted certificates")
		}
		return certificates, s.explain(err, "ssl.truststore.password")
	}
	var certificates []*x509.Certificate
	for rest := []byte(lines(s.content)); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("a certificate in %s cannot be read: %w", s, err)
		}
		certificates = append(certificates, c)
	}
	if len(certificates) == 0 {
		return nil, fmt.Errorf("there is no certificate in %s", s)
	}
	return certificates, nil
}

// identity is the key of a key store with its certificates.
func (s *store) identity(storePassword, keyPassword string) (*tls.Certificate, error) {
	if s.kind == typePEM {
		text := []byte(lines(s.content))
		if bytes.Contains(text, []byte("BEGIN ENCRYPTED PRIVATE KEY")) || bytes.Contains(text, []byte("Proc-Type: 4,ENCRYPTED")) {
			return nil, fmt.Errorf("the private key in %s is encrypted, which is not supported in PEM: decrypt it (openssl pkey -in … -out …), or use PKCS12", s)
		}
		identity, err := tls.X509KeyPair(text, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		return &identity, nil
	}
	if keyPassword != "" && keyPassword != storePassword {
		return nil, errors.New("ssl.key.password differs from ssl.keystore.password: in PKCS12 both are one")
	}
	key, leaf, chain, err := pkcs12.DecodeChain([]byte(s.content), storePassword)
	if err != nil {
		return nil, s.explain(err, "ssl.keystore.password")
	}
	identity := &tls.Certificate{PrivateKey: key, Leaf: leaf, Certificate: [][]byte{leaf.Raw}}
	for _, c := range chain {
		identity.Certificate = append(identity.Certificate, c.Raw)
	}
	return identity, nil
}

// explain names the file, and the property to look at when the password is wrong.
func (s *store) explain(err error, passwordKey string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pkcs12.ErrIncorrectPassword):
		return fmt.Errorf("%s cannot be opened: %s is wrong or missing", s.name, passwordKey)
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

// oneLine finds a PEM block that stands in a line, as it does in a properties file without \n.
var oneLine = regexp.MustCompile(`(-----BEGIN [^-]+-----)([^-\n]+)(-----END [^-]+-----)`)

// lines breaks PEM blocks that stand in one line.
func lines(text string) string {
	return oneLine.ReplaceAllStringFunc(text, func(block string) string {
		part := oneLine.FindStringSubmatch(block)
		return "\n" + part[1] + "\n" + strings.Join(strings.Fields(part[2]), "") + "\n" + part[3] + "\n"
	})
}
