package clientconfig

import (
	"cmp"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	mechanismKey = "sasl.mechanism"
	jaasKey      = "sasl.jaas.config"

	plainModule = "org.apache.kafka.common.security.plain.PlainLoginModule"
	scramModule = "org.apache.kafka.common.security.scram.ScramLoginModule"
)

// mechanisms are those that are supported, each with its login module.
var mechanisms = map[string]struct {
	module string
	build  func(user, password string, token bool) sasl.Mechanism
}{
	"PLAIN": {plainModule, func(user, password string, _ bool) sasl.Mechanism {
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	}},
	"SCRAM-SHA-256": {scramModule, func(user, password string, token bool) sasl.Mechanism {
		return scram.Auth{User: user, Pass: password, IsToken: token}.AsSha256Mechanism()
	}},
	"SCRAM-SHA-512": {scramModule, func(user, password string, token bool) sasl.Mechanism {
		return scram.Auth{User: user, Pass: password, IsToken: token}.AsSha512Mechanism()
	}},
}

// sasl makes the mechanism, and tells the user.
func (p *Properties) sasl() (sasl.Mechanism, string, error) {
	name := strings.ToUpper(p.get(mechanismKey))
	chosen, ok := mechanisms[name]
	switch {
	case name == "":
		return nil, "", p.errorf(mechanismKey, "it is missing, and Kafka's default GSSAPI is not supported: want PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
	case !ok:
		return nil, "", p.errorf(mechanismKey, "%q is not supported: want PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", name)
	}
	login := loginModule{class: chosen.module}
	if text := p.get(jaasKey); text != "" {
		var err error
		if login, err = parseJAAS(text); err != nil {
			return nil, "", p.errorf(jaasKey, "%w", err)
		}
	}
	user, password := cmp.Or(p.User, login.options["username"]), cmp.Or(p.Password, login.options["password"])
	switch {
	case login.class != chosen.module:
		return nil, "", p.errorf(jaasKey, "its login module is not that of %s, %s", name, chosen.module)
	case user == "" || password == "":
		return nil, "", p.errorf(jaasKey, "there is no user or no password: want %s required username=\"…\" password=\"…\";", chosen.module)
	}
	return chosen.build(user, password, strings.EqualFold(login.options["tokenauth"], "true")), user, nil
}
