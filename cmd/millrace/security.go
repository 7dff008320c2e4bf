package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/millrace-io/millrace/cmd/millrace/clientconfig"
	"github.com/millrace-io/millrace/streams"
)

// securityFlags say how to reach secured brokers. A flag wins over the same setting in the file; the file or the flags win
// over the environment.
type securityFlags struct {
	file         string
	tls          bool
	ca           string
	cert, key    string
	mechanism    string
	user         string
	passwordFile string
}

func (f *securityFlags) register(flags *flag.FlagSet) {
	flags.StringVar(&f.file, "command-config", "", "`file` with Kafka's client properties, as Kafka's own tools take it: security.protocol, ssl.*, sasl.*,\n"+
		"client.id, request.timeout.ms, default.api.timeout.ms. Flags win over it")
	flags.BoolVar(&f.tls, "tls", false, "TLS to the brokers, trusting the system's authorities (default: MILLRACE_TLS)")
	flags.StringVar(&f.ca, "tls-ca", "", "PEM `file` with the certificates of the authorities to trust instead; implies -tls")
	flags.StringVar(&f.cert, "tls-cert", "", "PEM `file` with the client's certificate, for brokers that ask for one; implies -tls")
	flags.StringVar(&f.key, "tls-key", "", "PEM `file` with the private key of -tls-cert (default: the file of -tls-cert)")
	flags.StringVar(&f.mechanism, "sasl-mechanism", "", "`name` of the login: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 (default: MILLRACE_SASL_MECHANISM)")
	flags.StringVar(&f.user, "sasl-user", "", "user `name` for SASL (default: MILLRACE_SASL_USER)")
	flags.StringVar(&f.passwordFile, "sasl-password-file", "", "`file` with the user's password (default: MILLRACE_SASL_PASSWORD)")
}

func (f *securityFlags) withTLS() bool { return f.tls || f.ca != "" || f.cert != "" || f.key != "" }

func (f *securityFlags) withSASL() bool {
	return f.mechanism != "" || f.user != "" || f.passwordFile != ""
}

// given tells whether any of the flags is there.
func (f *securityFlags) given() bool { return f.file != "" || f.withTLS() || f.withSASL() }

// connection puts file, flags and environment together.
func (f *securityFlags) connection(env streams.Config) (clientconfig.Connection, error) {
	properties := &clientconfig.Properties{}
	if f.file != "" {
		var err error
		if properties, err = clientconfig.Read(f.file); err != nil {
			return clientconfig.Connection{}, fmt.Errorf("-command-config: %w", err)
		}
	}
	if err := f.override(properties); err != nil {
		return clientconfig.Connection{}, err
	}
	c, err := properties.Connection()
	if err != nil {
		return c, err
	}
	if f.file == "" {
		if !f.withTLS() {
			c.TLS = env.TLS
		}
		if !f.withSASL() {
			c.SASL, c.User = env.SASL, os.Getenv("MILLRACE_SASL_USER")
		}
	}
	return c, nil
}

// override sets the properties that flags stand for.
func (f *securityFlags) override(p *clientconfig.Properties) error {
	if err := p.Secure("flags", f.withTLS(), f.withSASL()); err != nil {
		return err
	}
	if f.ca != "" {
		p.Delete(clientconfig.TrustKeys...)
		p.Set("-tls-ca", "ssl.truststore.location", f.ca)
		p.Set("-tls-ca", "ssl.truststore.type", "PEM")
	}
	if err := f.overrideIdentity(p); err != nil {
		return err
	}
	return f.overrideLogin(p)
}

func (f *securityFlags) overrideIdentity(p *clientconfig.Properties) error {
	if f.cert == "" {
		if f.key != "" {
			return usagef("-tls-key goes with -tls-cert")
		}
		return nil
	}
	cert, err := os.ReadFile(f.cert)
	if err != nil {
		return fmt.Errorf("-tls-cert: %w", err)
	}
	key, err := os.ReadFile(cmp.Or(f.key, f.cert))
	if err != nil {
		return fmt.Errorf("-tls-key: %w", err)
	}
	p.Delete(clientconfig.IdentityKeys...)
	p.Set("-tls-cert", "ssl.keystore.certificate.chain", string(cert))
	p.Set("-tls-cert", "ssl.keystore.key", string(key))
	return nil
}

// overrideLogin sets mechanism, user and password, each for itself. Without a file the environment has what the flags lack;
// with one it has only the password of -sasl-user.
func (f *securityFlags) overrideLogin(p *clientconfig.Properties) error {
	if !f.withSASL() {
		return nil
	}
	password, err := f.password()
	if err != nil {
		return err
	}
	mechanism, user := f.mechanism, f.user
	if f.file == "" {
		mechanism = cmp.Or(mechanism, os.Getenv("MILLRACE_SASL_MECHANISM"))
		user = cmp.Or(user, os.Getenv("MILLRACE_SASL_USER"))
		switch {
		case mechanism == "":
			return usagef("-sasl-mechanism is missing")
		case user == "":
			return usagef("-sasl-user is missing")
		case password == "":
			return usagef("the password of %s is missing: want -sasl-password-file or MILLRACE_SASL_PASSWORD", user)
		}
	}
	if mechanism != "" {
		p.Set("-sasl-mechanism", "sasl.mechanism", mechanism)
	}
	p.User = user
	if f.file == "" || f.user != "" || f.passwordFile != "" {
		p.Password = password
	}
	return nil
}

// password reads the password from its file, or from the environment.
func (f *securityFlags) password() (string, error) {
	if f.passwordFile == "" {
		return os.Getenv("MILLRACE_SASL_PASSWORD"), nil
	}
	text, err := os.ReadFile(f.passwordFile)
	if err != nil {
		return "", fmt.Errorf("-sasl-password-file: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
