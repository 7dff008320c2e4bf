package clientconfig

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const scramLogin = "sasl.jaas.config=" + scramModule + ` required username="app" password="hunter2";` + "\n"

func TestConnection(t *testing.T) {
	for text, want := range map[string]struct {
		tls       bool
		mechanism string
		user      string
	}{
		"":                       {},
		"security.protocol=SSL":  {tls: true},
		"security.protocol=ssl ": {tls: true},
		"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n" + scramLogin:                                                                   {true, "SCRAM-SHA-512", "app"},
		"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=scram-sha-256\n" + scramLogin:                                                             {false, "SCRAM-SHA-256", "app"},
		"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=" + plainModule + " required \\\n  username='a b' \\\n  password=word;": {true, "PLAIN", "a b"},
	} {
		c, err := read(t, text).Connection()
		mechanism := ""
		if c.SASL != nil {
			mechanism = c.SASL.Name()
		}
		if err != nil || (c.TLS != nil) != want.tls || mechanism != want.mechanism || c.User != want.user || len(c.Notes) > 0 {
			t.Errorf("%q: %+v, %v, want %+v", text, c, err, want)
		}
	}
}

func TestTimesAndClientID(t *testing.T) {
	c, err := read(t, "client.id=night\nrequest.timeout.ms=2500\ndefault.api.timeout.ms=5000").Connection()
	if err != nil || c.RequestTimeout != 2500*time.Millisecond || c.Timeout != 5*time.Second {
		t.Fatalf("%+v, %v", c, err)
	}
	client, err := kgo.NewClient(c.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if got := client.OptValue(kgo.ClientID); got != "night" {
		t.Errorf("the client id is %v", got)
	}
	if got := client.OptValue(kgo.RequestTimeoutOverhead); got != 2500*time.Millisecond {
		t.Errorf("the request timeout is %v", got)
	}
}

// What cannot work says where, which property, and what to write instead, and never a password.
func TestRefusals(t *testing.T) {
	const sasl = "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
	for text, want := range map[string]string{
		"security.protocol=TLS":                                           `security.protocol: it is "TLS": want PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL`,
		"security.protocol=SASL_SSL\n" + scramLogin:                       "sasl.mechanism: it is missing, and Kafka's default GSSAPI is not supported",
		"security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER":          `sasl.mechanism: "OAUTHBEARER" is not supported: want PLAIN`,
		"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n" + scramLogin: "sasl.jaas.config: its login module is not that of PLAIN",
		sasl: "sasl.jaas.config: there is no user or no password",
		sasl + "sasl.jaas.config=" + scramModule + ` required username="hunter2";`:                   "there is no user or no password",
		sasl + "sasl.jaas.config=" + scramModule + ` required username="a" password="hunter2"`:       "it ends too early",
		sasl + "sasl.jaas.config=" + scramModule + ` required username="a" password="hunter2;`:       "a quote is not closed",
		sasl + "sasl.jaas.config=" + scramModule + ` username="a" password="hunter2";`:               "no control flag: want required",
		sasl + "sasl.jaas.config=" + scramModule + ` required username "hunter2" password;`:          "an option is not name=",
		sasl + "sasl.jaas.config=" + scramModule + ` required username="a" password="b"; hunter2 x;`: "something follows the semicolon",
		sasl + "sasl.jaas.config=" + scramModule + ` required username="a" password = ; hunter2`:     "an option is not name=",
		"request.timeout.ms=soon":                                           `request.timeout.ms: it is "soon": want milliseconds`,
		"request.timeout.ms=0":                                              "want milliseconds, from 1",
		"request.timeout.ms=2000\ndefault.api.timeout.ms=1000":              "must not be less than request.timeout.ms",
		"config.providers=file":                                             "values from providers are not supported",
		"security.protocol=SSL\nssl.endpoint.identification.algorithm=none": `it is "none": want https, or nothing`,
	} {
		p := read(t, text)
		_, err := p.Connection()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "client.properties: ") && !strings.HasPrefix(err.Error(), "sasl.") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error shows a password: %v", text, err)
		}
	}
}

func TestJAAS(t *testing.T) {
	for text, want := range map[string]map[string]string{
		`m required;`:                                       {},
		`m required username="a" password="b";`:             {"username": "a", "password": "b"},
		"m  REQUIRED\n\tusername = a\n\tpassword='b c' ;  ": {"username": "a", "password": "b c"},
		`m required password="q\"uo\\te;=";`:                {"password": `q"uo\te;=`},
		`m required password="";`:                           {"password": ""},
		`m optional password="tab\tend" tokenauth="true";`:  {"password": "tab\tend", "tokenauth": "true"},
	} {
		got, err := parseJAAS(text)
		if err != nil || got.class != "m" || !maps.Equal(got.options, want) {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

// What is set later wins, and Secure only adds.
func TestOverrides(t *testing.T) {
	p := read(t, "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"+scramLogin)
	if err := p.Secure("flags", true, false); err != nil {
		t.Fatal(err)
	}
	p.Set("-sasl-mechanism", "sasl.mechanism", "SCRAM-SHA-256")
	p.User = "other"
	c, err := p.Connection()
	if err != nil || c.TLS == nil || c.User != "other" || c.SASL.Name() != "SCRAM-SHA-256" {
		t.Errorf("%+v, %v", c, err)
	}
	p.Password = "hunter3"
	p.Delete("sasl.jaas.config")
	if c, err = p.Connection(); err != nil || c.User != "other" {
		t.Errorf("without sasl.jaas.config: %+v, %v", c, err)
	}
	if _, first, err := c.SASL.Authenticate(context.Background(), ""); err != nil || !strings.Contains(string(first), "n=other,") {
		t.Errorf("the login begins with %q, %v", first, err)
	}
	var none Properties
	if err := none.Secure("flags", false, true); err != nil {
		t.Fatal(err)
	}
	if got := none.values["security.protocol"].value; got != "SASL_PLAINTEXT" {
		t.Errorf("security.protocol is %s", got)
	}
}
