package clientconfig

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/millrace-io/millrace/integration/certs"
)

// authorities are a broker's authority and its certificates.
type authorities struct {
	ca     *certs.Authority
	broker []byte // for localhost
	client []byte
}

func newAuthorities(t *testing.T) authorities {
	t.Helper()
	ca, err := certs.NewAuthority("ca")
	if err != nil {
		t.Fatal(err)
	}
	broker, err := ca.Issue("broker", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Issue("client")
	if err != nil {
		t.Fatal(err)
	}
	return authorities{ca, broker, client}
}

func keep(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pkcs12Stores writes the authority as a trust store and the client's certificate as a key store.
func (a authorities) pkcs12Stores(t *testing.T, password string) (trust, keys string) {
	t.Helper()
	pair, err := tls.X509KeyPair(a.client, a.client)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(a.ca.PEM)
	root, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{root}, password)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := pkcs12.Modern.Encode(pair.PrivateKey, pair.Leaf, []*x509.Certificate{root}, password)
	if err != nil {
		t.Fatal(err)
	}
	return keep(t, "trust.p12", trusted), keep(t, "keys.p12", identity)
}

// shake connects a client to a broker that asks for a certificate, and returns whose it got.
func (a authorities) shake(t *testing.T, client *tls.Config, host string) (peer string, err error) {
	t.Helper()
	pair, err := tls.X509KeyPair(a.broker, a.broker)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.ca.PEM)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	met := make(chan string, 1)
	go func() {
		defer close(met)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if server := conn.(*tls.Conn); server.Handshake() == nil {
			for _, c := range server.ConnectionState().PeerCertificates {
				met <- c.Subject.CommonName
			}
		}
	}()
	client = client.Clone()
	client.ServerName = host
	conn, err := tls.Dial("tcp", listener.Addr().String(), client)
	peer = <-met
	if err == nil {
		conn.Close()
	}
	return peer, err
}

func TestStores(t *testing.T) {
	a := newAuthorities(t)
	ca, identity := keep(t, "ca.pem", a.ca.PEM), keep(t, "client.pem", a.client)
	trust, keys := a.pkcs12Stores(t, "hunter2")
	inLine := func(text []byte) string { return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", " ") }
	escaped := func(text []byte) string { return strings.ReplaceAll(string(text), "\n", "\\n") }
	key, chain, _ := strings.Cut(string(a.client), "-----BEGIN CERTIFICATE")
	chain = "-----BEGIN CERTIFICATE" + chain
	for name, test := range map[string]struct{ text, peer string }{
		"PEM file":                    {"ssl.truststore.type=PEM\nssl.truststore.location=" + ca, ""},
		"type from the content":       {"ssl.truststore.location=" + ca, ""},
		"PEM in the file":             {"ssl.truststore.type=PEM\nssl.truststore.certificates=" + escaped(a.ca.PEM), ""},
		"PEM in one line":             {"ssl.truststore.certificates=" + inLine(a.ca.PEM), ""},
		"PKCS12":                      {"ssl.truststore.type=PKCS12\nssl.truststore.location=" + trust + "\nssl.truststore.password=hunter2", ""},
		"PKCS12 as Java's JKS":        {"ssl.truststore.type=jks\nssl.truststore.location=" + trust + "\nssl.truststore.password=hunter2", ""},
		"identity as PEM":             {"ssl.truststore.location=" + ca + "\nssl.keystore.type=PEM\nssl.keystore.location=" + identity, "client"},
		"identity as PKCS12":          {"ssl.truststore.location=" + ca + "\nssl.keystore.location=" + keys + "\nssl.keystore.password=hunter2\nssl.key.password=hunter2", "client"},
		"identity in the file":        {"ssl.truststore.location=" + ca + "\nssl.keystore.key=" + inLine([]byte(key)) + "\nssl.keystore.certificate.chain=" + inLine([]byte(chain)), "client"},
		"host not checked, on demand": {"ssl.endpoint.identification.algorithm=\nssl.truststore.location=" + ca, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := read(t, "security.protocol=SSL\n"+test.text).Connection()
			if err != nil || len(c.Notes) > 0 {
				t.Fatalf("%v, %q", err, c.Notes)
			}
			if peer, err := a.shake(t, c.TLS, "localhost"); err != nil || peer != test.peer {
				t.Errorf("the broker meets %q, %v, want %q", peer, err, test.peer)
			}
			_, err = a.shake(t, c.TLS, "elsewhere")
			if _, refused := err.(*tls.CertificateVerificationError); refused != !strings.Contains(test.text, "algorithm=\n") {
				t.Errorf("a certificate for another host: %v", err)
			}
		})
	}
}

// Without a check of the host, the authority still counts.
func TestUnknownAuthorityIsRefused(t *testing.T) {
	a, other := newAuthorities(t), newAuthorities(t)
	ca := keep(t, "ca.pem", other.ca.PEM)
	for _, text := range []string{"", "ssl.truststore.location=" + ca, "ssl.endpoint.identification.algorithm=\nssl.truststore.location=" + ca} {
		c, err := read(t, "security.protocol=SSL\n"+text).Connection()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.shake(t, c.TLS, "localhost"); err == nil || !strings.Contains(err.Error(), "unknown authority") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestStoresThatCannotBeRead(t *testing.T) {
	a := newAuthorities(t)
	ca := keep(t, "ca.pem", a.ca.PEM)
	trust, keys := a.pkcs12Stores(t, "hunter2")
	jks := keep(t, "trust.jks", []byte("\xfe\xed\xfe\xed\x00\x00\x00\x02"))
	locked := keep(t, "locked.pem", []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"))
	for text, want := range map[string]string{
		"ssl.truststore.location=/nowhere.pem":                                                        "ssl.truststore.location: open /nowhere.pem",
		"ssl.truststore.location=" + jks:                                                              "keytool -importkeystore -srckeystore " + jks,
		"ssl.truststore.location=" + trust + "\nssl.truststore.password=hunter3":                      "trust.p12 cannot be opened: ssl.truststore.password is wrong or missing",
		"ssl.truststore.location=" + trust:                                                            "ssl.truststore.password is wrong or missing",
		"ssl.truststore.type=PEM\nssl.truststore.location=" + trust:                                   "ssl.truststore.type: it is PEM, but " + trust + " is PKCS12",
		"ssl.truststore.type=BCFKS\nssl.truststore.location=" + trust:                                 `it is "BCFKS": want PEM or PKCS12`,
		"ssl.truststore.location=" + keep(t, "empty.pem", nil):                                        "empty.pem is neither PEM nor PKCS12",
		"ssl.truststore.location=" + keep(t, "key.pem", a.client[:60]):                                "there is no certificate in",
		"ssl.truststore.location=" + ca + "\nssl.truststore.certificates=x":                           "it goes without ssl.truststore.location",
		"ssl.truststore.location=" + keys + "\nssl.truststore.password=hunter2":                       keys,
		"ssl.keystore.location=" + ca:                                                                 ca + ": tls: ",
		"ssl.keystore.location=" + locked:                                                             "is encrypted, which is not supported in PEM: decrypt it",
		"ssl.keystore.location=" + keys + "\nssl.keystore.password=hunter3":                           "ssl.keystore.password is wrong or missing",
		"ssl.keystore.location=" + keys + "\nssl.keystore.password=hunter2\nssl.key.password=hunter3": "ssl.key.password differs from ssl.keystore.password",
		"ssl.keystore.key=x": "ssl.keystore.certificate.chain: it goes with ssl.keystore.key",
	} {
		_, err := read(t, "security.protocol=SSL\n"+text).Connection()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter") {
			t.Errorf("%q: the error shows a password: %v", text, err)
		}
	}
}
