package streams_test

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/millrace-io/millrace/integration/certs"
	"github.com/millrace-io/millrace/streams"
)

// Whom the brokers do not accept, or who does not accept them, ends at once instead of after the start time-out.
func TestRefusedAtStart(t *testing.T) {
	ca, err := certs.NewAuthority("ca")
	if err != nil {
		t.Fatal(err)
	}
	text, err := ca.Issue("broker", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "app", "right"),
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	cluster.ControlKey(kmsg.SASLAuthenticate.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		answer := req.ResponseKind().(*kmsg.SASLAuthenticateResponse) // this cluster would close the connection, unlike Kafka
		answer.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return answer, nil, true
	})
	trusting := x509.NewCertPool()
	trusting.AppendCertsFromPEM(ca.PEM)
	for name, test := range map[string]struct {
		roots    *x509.CertPool
		password string
		want     string
	}{
		"wrong password":    {trusting, "wrong", kerr.SaslAuthenticationFailed.Message},
		"unknown authority": {x509.NewCertPool(), "right", "unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fixture{T: t, names: namesOf("refused"), brokers: cluster.ListenAddrs()}
			cfg := f.config("wc-0")
			cfg.TLS = &tls.Config{RootCAs: test.roots}
			cfg.SASL = scram.Auth{User: "app", Pass: test.password}.AsSha512Mechanism()
			b, _ := f.wordCount()
			app, err := streams.New(b, cfg)
			if err != nil {
				t.Fatal(err)
			}
			err = app.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "do not accept each other") {
				t.Errorf("it ended with %v, want %q at once", err, test.want)
			}
		})
	}
}
