package integration

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/millrace-io/millrace/integration/kafka"
	"github.com/millrace-io/millrace/streams"
)

// secured is a real Kafka that asks for TLS and authentication, and lets ACLs decide.
type secured struct {
	*kafka.Broker
	tls    *tls.Config // trusts the broker
	client *tls.Config // presents a certificate too
}

func startSecured(t *testing.T, ctx context.Context) secured {
	t.Helper()
	if os.Getenv("KAFKA_BOOTSTRAP") == "" {
		t.Skip("KAFKA_BOOTSTRAP is not set: a secured real broker is started in make test-kafka only")
	}
	b, err := kafka.Start(ctx, kafka.Config{Name: "secured-app", Secure: true, Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Kill(); err != nil {
			t.Error(err)
		}
	})
	authority, err := os.ReadFile(b.File(kafka.CAFile))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(b.File(kafka.ClientFile), b.File(kafka.ClientFile))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return secured{b, &tls.Config{RootCAs: pool}, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}}
}

// options are those of a client that is a user.
func (s secured) options(u kafka.User) []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(s.Addr()), kgo.DialTLSConfig(s.tls), kgo.SASL(scram.Auth{User: u.Name, Pass: u.Password}.AsSha512Mechanism())}
}

// newJob makes a job with topics, and gives a principal what docs/operations.md says that an application needs.
func (s secured) newJob(t *testing.T, ctx context.Context, principal string) job {
	t.Helper()
	name := strings.ToLower(rand.Text()[:10])
	j := job{AppID: "app-" + name, Lines: "lines-" + name, Counts: "counts-" + name, access: s.options(kafka.Admin)}
	adm := kadm.NewClient(newClient(t, j.access...))
	answers, err := adm.CreateTopics(ctx, partitions, 1, nil, j.Lines, j.Counts)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		t.Fatalf("create topics: %v", err)
	}
	allow := func(acls *kadm.ACLBuilder) {
		t.Helper()
		created, err := adm.CreateACLs(ctx, acls.Allow(principal).AllowHosts())
		for _, c := range created {
			err = errors.Join(err, c.Err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	literal := func() *kadm.ACLBuilder { return kadm.NewACLs().ResourcePatternType(kadm.ACLPatternLiteral) }
	prefixed := func() *kadm.ACLBuilder { return kadm.NewACLs().ResourcePatternType(kadm.ACLPatternPrefixed) }
	allow(literal().Topics(j.Lines).Operations(kadm.OpRead))
	allow(literal().Topics(j.Counts).Operations(kadm.OpWrite))
	allow(literal().Groups(j.AppID).Operations(kadm.OpRead))
	allow(prefixed().Topics(j.AppID+"-").Operations(kadm.OpCreate, kadm.OpRead, kadm.OpWrite, kadm.OpDelete))
	allow(prefixed().TransactionalIDs(j.AppID + "-").Operations(kadm.OpWrite))
	return j
}

// An application reaches a secured broker by Config.TLS and Config.SASL, or with options of the client, and has no more ACLs
// than it needs.
func TestWordCountOnASecuredKafka(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s := startSecured(t, ctx)
	for way, test := range map[string]struct {
		principal string
		reach     func(*streams.Config)
	}{
		"SASL_SSL": {"User:" + kafka.App.Name, func(c *streams.Config) {
			c.Brokers, c.TLS = []string{s.Addr()}, s.tls
			c.SASL = scram.Auth{User: kafka.App.Name, Pass: kafka.App.Password}.AsSha512Mechanism()
		}},
		"SSL with a certificate": {kafka.CertificatePrincipal, func(c *streams.Config) {
			c.Brokers, c.KafkaOptions = []string{s.SSLAddr()}, []kgo.Opt{kgo.DialTLSConfig(s.client)}
		}},
	} {
		for _, guarantee := range guarantees {
			t.Run(way+"/"+guarantee.String(), func(t *testing.T) {
				ctx := patient(t)
				j, in := s.newJob(t, ctx, test.principal), newInput()
				client := newClient(t, j.options(kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
				cfg := j.config("wc-0", t.TempDir(), guarantee)
				test.reach(&cfg)
				b, _ := j.topology()
				a := start(t, b, cfg)
				follower := j.follow(t)
				in.feed(t, client, j, 500)
				if err := follower.Await(ctx, in.fed()); err != nil {
					t.Fatal(err)
				}
				a.close(t)
				j.compare(t, in)
			})
		}
	}
	t.Run("refusals", func(t *testing.T) { s.refusals(t, ctx) })
}

// refusals: an application that may not in ends and says why, at once if waiting does not help.
func (s secured) refusals(t *testing.T, ctx context.Context) {
	j := s.newJob(t, ctx, "User:nobody")
	good := scram.Auth{User: kafka.App.Name, Pass: kafka.App.Password}.AsSha512Mechanism()
	for name, test := range map[string]struct {
		change func(*streams.Config)
		want   string
		late   bool // brokers that close the connection without a word may be on their way
	}{
		"wrong password": {func(c *streams.Config) {
			c.SASL = scram.Auth{User: kafka.App.Name, Pass: "wrong-secret"}.AsSha512Mechanism()
		}, "SASL_AUTHENTICATION_FAILED", false},
		"no TLS":     {func(c *streams.Config) { c.TLS = nil }, "tls alert", true},
		"no SASL":    {func(c *streams.Config) { c.SASL = nil }, "is SASL missing?", true},
		"unknown CA": {func(c *streams.Config) { c.TLS = &tls.Config{RootCAs: x509.NewCertPool()} }, "unknown authority", false},
		"no ACLs":    {func(*streams.Config) {}, "AUTHORIZATION_FAILED", false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := j.config("wc-0", t.TempDir(), streams.ExactlyOnce)
			cfg.Brokers, cfg.TLS, cfg.SASL = []string{s.Addr()}, s.tls, good
			cfg.StartTimeout = 2 * time.Second
			if !test.late {
				cfg.StartTimeout = patience
			}
			test.change(&cfg)
			ctx, cancel := context.WithTimeout(ctx, patience/2)
			defer cancel()
			b, _ := j.topology()
			a := start(t, b, cfg)
			select {
			case <-a.ended:
			case <-ctx.Done():
				t.Fatal("the application goes on")
			}
			if a.err == nil || !strings.Contains(a.err.Error(), test.want) || strings.Contains(a.err.Error(), "-secret") {
				t.Errorf("it ended with %v, want %q", a.err, test.want)
			}
		})
	}
}
