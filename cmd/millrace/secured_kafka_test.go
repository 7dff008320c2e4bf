package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/cmd/millrace/clientconfig"
	"github.com/millrace-io/millrace/integration/certs"
	"github.com/millrace-io/millrace/integration/kafka"
)

// secured is a real Kafka that asks for TLS and authentication.
type secured struct {
	*kafka.Broker
	plaintext string            // a Kafka that does not
	admin     []kgo.Opt         // of who may do everything
	ca        string            // file
	passwords map[string]string // user to file
	keytool   string
}

func startSecured(t *testing.T, ctx context.Context) *secured {
	t.Helper()
	plaintext := os.Getenv("KAFKA_BOOTSTRAP")
	if plaintext == "" {
		t.Skip("KAFKA_BOOTSTRAP is not set: a secured real broker is started in make test-kafka only")
	}
	b, err := kafka.Start(ctx, kafka.Config{Name: "secured-cli", Secure: true, Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Kill(); err != nil {
			t.Error(err)
		}
	})
	s := &secured{Broker: b, plaintext: plaintext, ca: b.File(kafka.CAFile), passwords: map[string]string{}}
	for _, u := range []kafka.User{kafka.Admin, kafka.App, {Name: "wrong", Password: "wrong-secret"}} {
		s.passwords[u.Name] = writeFile(t, u.Name, []byte(u.Password+"\n"))
	}
	if s.keytool, err = kafka.Keytool(); err != nil {
		t.Fatal(err)
	}
	properties, err := clientconfig.Read(b.File(kafka.AdminConfig))
	if err != nil {
		t.Fatal(err)
	}
	connection, err := properties.Connection()
	if err != nil {
		t.Fatal(err)
	}
	s.admin = append(connection.Options(), kgo.SeedBrokers(b.Addr()))
	return s
}

func writeFile(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// allow lets principals do something with the groups whose names begin so.
func (s *secured) allow(t *testing.T, ctx context.Context, groups string, op kadm.ACLOperation, principals ...string) {
	t.Helper()
	client, err := kgo.NewClient(s.admin...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	acls := kadm.NewACLs().Groups(groups).ResourcePatternType(kadm.ACLPatternPrefixed).Operations(op).Allow(principals...).AllowHosts()
	created, err := kadm.NewClient(client).CreateACLs(ctx, acls)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range created {
		if c.Err != nil {
			t.Fatal(c.Err)
		}
	}
}

// login are the flags of a user.
func (s *secured) login(mechanism, user, password string) []string {
	return []string{"-brokers", s.Addr(), "-tls-ca", s.ca, "-sasl-mechanism", mechanism, "-sasl-user", user, "-sasl-password-file", s.passwords[password]}
}

// with are the flags of a file with client properties.
func (s *secured) with(file string) []string {
	return []string{"-brokers", s.Addr(), "-command-config", file}
}

// run runs a verb. No password may ever be told.
func (s *secured) run(t *testing.T, verb string, args ...string) (status int, out, said string) {
	t.Helper()
	status, out, said = runWith("", append([]string{verb}, args...)...)
	if strings.Contains(out+said, "-secret") {
		t.Errorf("%s tells a password:\n%s%s", verb, out, said)
	}
	return status, out, said
}

// ways are the ways to reach the broker.
func (s *secured) ways(t *testing.T) map[string][]string {
	trust := writeFile(t, "trust.p12", nil)
	if err := os.Remove(trust); err != nil { // the tool wants no file there
		t.Fatal(err)
	}
	text, err := exec.Command(s.keytool, "-importcert", "-noprompt", "-alias", "ca", "-file", s.ca, "-keystore", trust, "-storetype", "PKCS12", "-storepass", "store-secret").CombinedOutput()
	if err != nil {
		t.Fatalf("keytool: %v\n%s", err, text)
	}
	java := writeFile(t, "java.properties", []byte("security.protocol=SASL_SSL\r\nsasl.mechanism=PLAIN\r\n"+
		"ssl.truststore.location="+trust+"\r\nssl.truststore.password=store-secret\r\n"+
		"sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\\r\n  username=\"app\" \\\r\n  password=\"app-secret\";\r\n"))
	wrong := writeFile(t, "wrong.properties", []byte("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nssl.truststore.location=/nowhere\n"+
		"sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username=\"nobody\" password=\"wrong-secret\";\n"))
	return map[string][]string{
		"flags, SCRAM":              s.login("SCRAM-SHA-512", "admin", "admin"),
		"flags, PLAIN":              s.login("PLAIN", "app", "app"),
		"flags, certificate":        {"-brokers", s.SSLAddr(), "-tls-ca", s.ca, "-tls-cert", s.File(kafka.ClientFile)},
		"file, SCRAM":               s.with(s.File(kafka.AppConfig)),
		"file, PLAIN":               s.with(s.File(kafka.PlainConfig)),
		"file, certificate":         {"-brokers", s.SSLAddr(), "-command-config", s.File(kafka.SSLConfig)},
		"file from Windows, PKCS12": s.with(java),
		"flags over a wrong file":   append(s.login("PLAIN", "app", "app"), "-command-config", wrong),
	}
}

func TestSecuredKafka(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s := startSecured(t, ctx)
	t.Run("verbs", func(t *testing.T) { s.verbs(t, ctx) })
	t.Run("refusals", func(t *testing.T) { s.refusals(t, ctx) })
	t.Run("tools", func(t *testing.T) { s.tools(t, ctx) })
}

// verbs: each works with every way to reach the broker, as a user who has no more than the operation READ on the group.
func (s *secured) verbs(t *testing.T, ctx context.Context) {
	s.allow(t, ctx, "cli-", kadm.OpRead, "User:"+kafka.App.Name, kafka.CertificatePrincipal)
	verbs := map[string]struct {
		args []string
		want string
	}{
		"instances":       {nil, "Stable, 2 members"},
		"members":         {nil, "Stable, 2 members"},
		"expect":          {[]string{"-remove-now", "a"}, "removed: b"},
		"force-rebalance": {[]string{"-instance-ids", "b"}, "removed: b"},
		"remove-members":  {[]string{"-all"}, "a: removed\nb: removed"},
	}
	for way, flags := range s.ways(t) {
		t.Run(way, func(t *testing.T) {
			for verb, test := range verbs {
				group := "cli-" + strings.ToLower(rand.Text()[:8])
				joinAll(t, ctx, group, []string{"a", "b"}, s.admin...)
				args := append(append(flags[:len(flags):len(flags)], "-group", group), test.args...)
				if status, out, said := s.run(t, verb, args...); status != statusOK || !strings.Contains(out, test.want) {
					t.Errorf("%s: status %d, want %q:\n%s%s", verb, status, test.want, out, said)
				}
			}
		})
	}
}

// refusals: what, where, and what to do.
func (s *secured) refusals(t *testing.T, ctx context.Context) {
	s.allow(t, ctx, "seen-", kadm.OpDescribe, "User:"+kafka.App.Name)
	joinAll(t, ctx, "seen-g", []string{"a"}, s.admin...)
	other, err := certs.NewAuthority("other")
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := other.Issue("app")
	if err != nil {
		t.Fatal(err)
	}
	otherCA, strange := writeFile(t, "other.pem", other.PEM), writeFile(t, "stranger.pem", stranger)
	jks := filepath.Join(t.TempDir(), "trust.jks")
	if text, err := exec.Command(s.keytool, "-importcert", "-noprompt", "-alias", "ca", "-file", s.ca, "-keystore", jks, "-storetype", "JKS", "-storepass", "store-secret").CombinedOutput(); err != nil {
		t.Fatalf("keytool: %v\n%s", err, text)
	}
	withJKS := writeFile(t, "jks.properties", []byte("security.protocol=SSL\nssl.truststore.location="+jks+"\nssl.truststore.password=store-secret\n"))
	at := []string{"-brokers", s.Addr()}
	for name, test := range map[string]struct {
		args []string
		want string // what
		hint string // what to do
	}{
		"wrong SCRAM password": {s.login("SCRAM-SHA-512", "admin", "wrong"), "SASL_AUTHENTICATION_FAILED", `the user "admin" with SCRAM-SHA-512: check name, password`},
		"wrong PLAIN password": {s.login("PLAIN", "admin", "wrong"), "SASL_AUTHENTICATION_FAILED", `the user "admin" with PLAIN`},
		"unknown user":         {s.login("SCRAM-SHA-512", "nobody", "wrong"), "SASL_AUTHENTICATION_FAILED", `the user "nobody"`},
		"unknown mechanism":    {s.login("SCRAM-SHA-256", "admin", "admin"), "UNSUPPORTED_SASL_MECHANISM", "do not have SCRAM-SHA-256"},
		"unknown authority":    {append(at, "-tls"), "signed by unknown authority", "-tls-ca"},
		"wrong authority":      {append(at, "-tls-ca", otherCA), "signed by unknown authority", "not those of the brokers"},
		"plaintext to TLS":     {at, "tls alert", "speak TLS at this port: -tls"},
		"TLS without SASL":     {append(at, "-tls-ca", s.ca), "closed the connection", "-sasl-mechanism"},
		"no certificate":       {[]string{"-brokers", s.SSLAddr(), "-tls-ca", s.ca}, "remote error: tls", "-tls-cert"},
		"strange certificate":  {[]string{"-brokers", s.SSLAddr(), "-tls-ca", s.ca, "-tls-cert", strange}, "remote error: tls", "refuse the client's certificate"},
		"TLS to plaintext":     {[]string{"-brokers", s.plaintext, "-tls"}, "closed the connection", "no TLS"},
		"SASL to plaintext":    {[]string{"-brokers", s.plaintext, "-sasl-mechanism", "PLAIN", "-sasl-user", "x", "-sasl-password-file", s.passwords["wrong"]}, "ILLEGAL_SASL_STATE", "want no SASL at this port"},
		"no ACL":               {s.login("PLAIN", "app", "app"), "GROUP_AUTHORIZATION_FAILED", `the user "app" lacks an ACL: the operation DESCRIBE on the group to look, READ to remove`},
		"no ACL, certificate":  {[]string{"-brokers", s.SSLAddr(), "-command-config", s.File(kafka.SSLConfig)}, "GROUP_AUTHORIZATION_FAILED", "the principal of the client's certificate"},
		"Java's old key store": {append(at, "-command-config", withJKS), "type JKS", "-deststoretype PKCS12"},
		"wrong port":           {[]string{"-brokers", "127.0.0.1:1", "-command-config", s.File(kafka.AdminConfig)}, "127.0.0.1:1: connect: connection refused", "is the broker down"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, verb := range []string{"instances", "members", "remove-members -all", "force-rebalance", "expect -remove-now a"} {
				words := strings.Fields(verb)
				args := append(append([]string{"-group", "nowhere-g"}, test.args...), words[1:]...)
				status, out, said := s.run(t, words[0], args...)
				if status != statusFailed || out != "" || !strings.Contains(said, test.want) || !strings.Contains(said, test.hint) {
					t.Errorf("%s: status %d, want %q and %q:\n%s%s", verb, status, test.want, test.hint, out, said)
				}
			}
		})
	}
	t.Run("an ACL to look only", func(t *testing.T) {
		flags := append(s.login("PLAIN", "app", "app"), "-group", "seen-g", "-instance-ids", "a")
		if status, out, said := s.run(t, "remove-members", append(flags, "-dry-run")...); status != statusOK || !strings.Contains(out, "a: would remove") || !strings.Contains(said, "you lack the operation READ") {
			t.Errorf("dry run: status %d\n%s%s", status, out, said)
		}
		if status, out, said := s.run(t, "remove-members", flags...); status != statusFailed || !strings.Contains(said, "GROUP_AUTHORIZATION_FAILED") || !strings.Contains(said, "READ to remove members") {
			t.Errorf("status %d\n%s%s", status, out, said)
		}
	})
}

// tools: Kafka's own ones read the same files.
func (s *secured) tools(t *testing.T, ctx context.Context) {
	s.allow(t, ctx, "tools", kadm.OpDescribe, kafka.CertificatePrincipal)
	joinAll(t, ctx, "tools", []string{"a"}, s.admin...)
	for file, addr := range map[string]string{kafka.AdminConfig: s.Addr(), kafka.SSLConfig: s.SSLAddr()} {
		tool, err := kafka.Tool(ctx, filepath.Dir(filepath.Dir(s.ca)), "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
			"--bootstrap-server", addr, "--command-config", s.File(file), "--describe", "--group", "tools", "--members")
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		tool.Stderr = &said
		if out, err := tool.Output(); err != nil || !strings.Contains(string(out), "tools") {
			t.Errorf("%s: %v\n%s%s", file, err, out, &said)
		}
		if status, out, said := s.run(t, "members", "-brokers", addr, "-command-config", s.File(file), "-group", "tools"); status != statusOK {
			t.Errorf("%s: status %d\n%s%s", file, status, out, said)
		}
	}
}
