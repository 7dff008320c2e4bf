package clientconfig

import (
	"crypto/tls"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
)

// The values of security.protocol.
const (
	plaintext     = "PLAINTEXT"
	ssl           = "SSL"
	saslPlaintext = "SASL_PLAINTEXT"
	saslSSL       = "SASL_SSL"
)

// Connection is how to reach brokers. The zero value is a plaintext connection without authentication.
type Connection struct {
	TLS  *tls.Config    // nil: plaintext
	SASL sasl.Mechanism // nil: none
	User string         // of SASL

	ClientID       string
	RequestTimeout time.Duration // of one request; 0: the client's own
	Timeout        time.Duration // of all together (default.api.timeout.ms); 0 if not said

	// Notes say which properties have no effect.
	Notes []string
}

// Connection makes settings of the properties.
func (p *Properties) Connection() (Connection, error) {
	var c Connection
	if p.has("config.providers") {
		return c, p.errorf("config.providers", "values from providers are not supported: write them into the file, or generate it")
	}
	withTLS, withSASL, err := p.protocol()
	if err != nil {
		return c, err
	}
	if withTLS {
		if c.TLS, err = p.tls(); err != nil {
			return c, err
		}
	}
	if withSASL {
		if c.SASL, c.User, err = p.sasl(); err != nil {
			return c, err
		}
	}
	c.ClientID = p.get("client.id")
	if c.RequestTimeout, err = p.millis("request.timeout.ms"); err != nil {
		return c, err
	}
	if c.Timeout, err = p.millis("default.api.timeout.ms"); err != nil {
		return c, err
	}
	if c.Timeout != 0 && c.Timeout < c.RequestTimeout {
		return c, p.errorf("default.api.timeout.ms", "it must not be less than request.timeout.ms")
	}
	c.Notes = p.notes(withTLS, withSASL)
	return c, nil
}

// protocol reads security.protocol.
func (p *Properties) protocol() (withTLS, withSASL bool, err error) {
	switch name := strings.ToUpper(p.get("security.protocol")); name {
	case "", plaintext:
		return false, false, nil
	case ssl:
		return true, false, nil
	case saslPlaintext:
		return false, true, nil
	case saslSSL:
		return true, true, nil
	default:
		return false, false, p.errorf("security.protocol", "it is %q: want %s, %s, %s or %s", name, plaintext, ssl, saslPlaintext, saslSSL)
	}
}

// Secure makes security.protocol one with TLS, or with SASL, beside what it has already.
func (p *Properties) Secure(origin string, withTLS, withSASL bool) error {
	hadTLS, hadSASL, err := p.protocol()
	if err != nil {
		return err
	}
	name := plaintext
	switch withTLS, withSASL = withTLS || hadTLS, withSASL || hadSASL; {
	case withTLS && withSASL:
		name = saslSSL
	case withTLS:
		name = ssl
	case withSASL:
		name = saslPlaintext
	}
	p.Set(origin, "security.protocol", name)
	return nil
}

// millis reads a time in milliseconds.
func (p *Properties) millis(key string) (time.Duration, error) {
	text := p.get(key)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, p.errorf(key, "it is %q: want milliseconds, from 1 to %d", text, int32(1<<31-1))
	}
	return time.Duration(n) * time.Millisecond, nil
}

// notes say what has no effect, and why if that is known.
func (p *Properties) notes(withTLS, withSASL bool) []string {
	var notes []string
	for _, kind := range []struct {
		prefix, needs string
		on            bool
	}{{"ssl.", ssl + " or " + saslSSL, withTLS}, {"sasl.", saslPlaintext + " or " + saslSSL, withSASL}} {
		if kind.on {
			continue
		}
		for key := range p.values {
			if strings.HasPrefix(key, kind.prefix) {
				notes = append(notes, "without security.protocol="+kind.needs+" the properties "+kind.prefix+"* have no effect")
				break
			}
		}
	}
	if p.has("bootstrap.servers") {
		notes = append(notes, "bootstrap.servers has no effect: the command line names the brokers, as with Kafka's tools")
		p.used["bootstrap.servers"] = true
	}
	return append(notes, p.unused()...)
}

// Options are the settings as options of a client.
func (c Connection) Options() []kgo.Opt {
	var opts []kgo.Opt
	if c.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(c.TLS))
	}
	if c.SASL != nil {
		opts = append(opts, kgo.SASL(c.SASL))
	}
	if c.ClientID != "" {
		opts = append(opts, kgo.ClientID(c.ClientID))
	}
	if c.RequestTimeout > 0 {
		opts = append(opts, kgo.RequestTimeoutOverhead(c.RequestTimeout))
	}
	return opts
}
