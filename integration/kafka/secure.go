package kafka

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace-io/millrace/integration/certs"
)

// User is a user of a secured broker.
type User struct{ Name, Password string }

// The users of a secured broker, for PLAIN and SCRAM. Who authenticates with the client certificate is CertificatePrincipal.
var (
	Admin = User{"admin", "admin-secret"} // may do everything
	App   = User{"app", "app-secret"}     // may do nothing, until an ACL says so
)

// CertificatePrincipal is who the certificate in the file client.pem authenticates. It may do nothing, until an ACL says so.
const CertificatePrincipal = "User:CN=app"

// The files of a secured broker, see [Broker.File].
const (
	CAFile      = "ca.pem"           // the authority of all certificates
	ClientFile  = "client.pem"       // a client's certificate and key
	AdminConfig = "admin.properties" // client properties for Admin with SCRAM-SHA-512
	AppConfig   = "app.properties"   // the same for App
	PlainConfig = "plain.properties" // for App with PLAIN
	SSLConfig   = "ssl.properties"   // for the client certificate, at SSLAddr
	brokerFile  = "broker.pem"
	brokerName  = "broker" // CN of its certificate
)

// File is the path of one of the files that a broker started with Config.Secure has for its clients.
func (b *Broker) File(name string) string { return b.cfg.file(name) }

// SSLAddr is the address of a secured broker for clients with a certificate, host:port.
func (b *Broker) SSLAddr() string { return address(b.rec.SSLPort) }

func (c Config) file(name string) string { return filepath.Join(c.home(), name) }

// secureProperties are the server properties of a secured broker. Its listeners are SASL_SSL, and SSL for clients with a
// certificate; broker and controller talk to each other as such a client.
func (c Config) secureProperties() map[string]string {
	listeners := fmt.Sprintf("SASL_SSL://%s,SSL://%s,CONTROLLER://%s", address(c.Port), address(c.SSLPort), address(c.ControllerPort))
	plain := fmt.Sprintf("org.apache.kafka.common.security.plain.PlainLoginModule required user_%s=%q user_%s=%q;",
		Admin.Name, Admin.Password, App.Name, App.Password)
	return map[string]string{
		"listeners":                      listeners,
		"advertised.listeners":           listeners,
		"inter.broker.listener.name":     "SSL",
		"listener.security.protocol.map": "CONTROLLER:SSL,SSL:SSL,SASL_SSL:SASL_SSL",

		"ssl.keystore.type":                      "PEM",
		"ssl.keystore.location":                  filepath.ToSlash(c.file(brokerFile)),
		"ssl.truststore.type":                    "PEM",
		"ssl.truststore.location":                filepath.ToSlash(c.file(CAFile)),
		"ssl.client.auth":                        "required",
		"listener.name.sasl_ssl.ssl.client.auth": "none",

		"sasl.enabled.mechanisms":                               "PLAIN,SCRAM-SHA-512",
		"listener.name.sasl_ssl.plain.sasl.jaas.config":         plain,
		"listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",

		"authorizer.class.name":          "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":                    "User:CN=" + brokerName + ";User:" + Admin.Name,
		"allow.everyone.if.no.acl.found": "false",
	}
}

// scramUsers are the arguments that make the users when the data directory is formatted.
func scramUsers() []string {
	var args []string
	for _, u := range []User{Admin, App} {
		args = append(args, "--add-scram", fmt.Sprintf("SCRAM-SHA-512=[name=%s,password=%s]", u.Name, u.Password))
	}
	return args
}

// writeSecurity makes certificates, and client properties for Kafka's tools and for others.
func (c Config) writeSecurity() error {
	ca, err := certs.NewAuthority("millrace test authority")
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	broker, err := ca.Issue(brokerName, "127.0.0.1", "localhost")
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	client, err := ca.Issue("app")
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	trust := fmt.Sprintf("ssl.truststore.type=PEM\nssl.truststore.location=%s\n", filepath.ToSlash(c.file(CAFile)))
	for name, text := range map[string]string{
		CAFile:      string(ca.PEM),
		brokerFile:  string(broker),
		ClientFile:  string(client),
		AdminConfig: trust + login(Admin, "SCRAM-SHA-512", "scram.Scram"),
		AppConfig:   trust + login(App, "SCRAM-SHA-512", "scram.Scram"),
		PlainConfig: trust + login(App, "PLAIN", "plain.Plain"),
		SSLConfig:   trust + fmt.Sprintf("security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.location=%s\n", filepath.ToSlash(c.file(ClientFile))),
	} {
		if err := os.WriteFile(c.file(name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("kafka: %w", err)
		}
	}
	return nil
}

// login are the client properties of a user.
func login(u User, mechanism, module string) string {
	return fmt.Sprintf("security.protocol=SASL_SSL\nsasl.mechanism=%s\n"+
		"sasl.jaas.config=org.apache.kafka.common.security.%sLoginModule required \\\n    username=%q \\\n    password=%q;\n",
		mechanism, module, u.Name, u.Password)
}
