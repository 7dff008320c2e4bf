package main

import (
	"crypto/tls"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/millrace-io/millrace/integration/certs"
)

// secure starts a cluster at $SECURED that asks for TLS, with the authority in ca.pem, and for SASL: the user admin has the
// password admin-secret with SCRAM-SHA-512, and one with quotes with PLAIN. Only an embedded cluster knows our groups, so that
// scripts meet no group there, which shows that they got in.
func secure(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: secured")
	}
	ca, err := certs.NewAuthority("ca")
	ts.Check(err)
	text, err := ca.Issue("broker", "127.0.0.1")
	ts.Check(err)
	pair, err := tls.X509KeyPair(text, text)
	ts.Check(err)
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}), kfake.EnableSASL(),
		kfake.Superuser("SCRAM-SHA-512", "admin", "admin-secret"), kfake.Superuser("PLAIN", "admin", `a "quoted\" one`))
	ts.Check(err)
	ts.Defer(c.Close)
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), ca.PEM, 0o600))
	ts.Setenv("SECURED", strings.Join(c.ListenAddrs(), ","))
}
