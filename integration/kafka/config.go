package kafka

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"text/template"
)

//go:embed server.properties.tmpl
var serverProperties string

//go:embed log4j2.properties
var log4jProperties []byte

var serverTemplate = template.Must(template.New("server.properties").Parse(serverProperties))

// Config describes one broker. The zero value works: a broker named "single" with small test heap on two
// free ports.
type Config struct {
	// Dir is the run directory; RunDir() if empty.
	Dir string
	// Name tells brokers of one run directory apart and names their data. "single" if empty.
	Name string
	// Port serves clients, ControllerPort the controller; 0 chooses a free one. A broker that was formatted
	// before keeps the controller port it has, since the quorum remembers it.
	Port, ControllerPort int
	// Fresh removes the data of an earlier broker of this name first.
	Fresh bool
	// Bench takes the JVM flags of Kafka's own start script (G1, both compilers) with a heap of 1 GiB,
	// instead of small ones that start quickly.
	Bench bool
	// CPUs pins the broker with taskset, for example "1". Empty: anywhere.
	CPUs string
	// Secure makes clients authenticate and ACLs decide: Port is SASL_SSL with SCRAM-SHA-512 and PLAIN, SSLPort is SSL with a
	// client certificate. See [Broker.File] for what clients need. To be said again for a broker that was formatted before.
	Secure bool
	// SSLPort is the second port of a secured broker; 0 chooses a free one.
	SSLPort int
	// Properties are server properties that override those of the package.
	Properties map[string]string
}

// Flags for tests: small, and quick to start. HotSpot would otherwise take G1 on two cores.
var testFlags = []string{"-Xms192m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
	"-XX:MaxDirectMemorySize=128m", "-XX:ReservedCodeCacheSize=96m", "-Djdk.nio.maxCachedBufferSize=262144",
	"-Djava.net.preferIPv4Stack=true", "-XX:+ExitOnOutOfMemoryError"}

// Flags for benchmarks: what Kafka's start script uses, with a fixed heap.
var benchFlags = []string{"-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
	"-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent",
	"-Djava.net.preferIPv4Stack=true", "-XX:+ExitOnOutOfMemoryError"}

func (c Config) flags() []string {
	if c.Bench {
		return benchFlags
	}
	return testFlags
}

func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		dir, err := RunDir()
		if err != nil {
			return c, err
		}
		c.Dir = dir
	}
	if c.Name == "" {
		c.Name = "single"
	}
	if c.Name != filepath.Base(c.Name) || c.Name == "." || c.Name == ".." {
		return c, fmt.Errorf("kafka: broker name %q must be a plain file name", c.Name)
	}
	for _, port := range []int{c.Port, c.SSLPort, c.ControllerPort} {
		if port < 0 || port > 65535 {
			return c, fmt.Errorf("kafka: port %d of broker %s: must be 0 to 65535", port, c.Name)
		}
	}
	return c, nil
}

func (c Config) home() string       { return filepath.Join(c.Dir, c.Name) }
func (c Config) dataDir() string    { return filepath.Join(c.home(), "data") }
func (c Config) logFile() string    { return filepath.Join(c.home(), "broker.log") }
func (c Config) properties() string { return filepath.Join(c.home(), "server.properties") }
func (c Config) recordFile() string { return filepath.Join(c.home(), "broker.json") }

// address is a port of this machine.
func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// choosePorts fills in the ports that were left to us and checks the others, so that a busy one is named before a
// JVM starts. The ports are released before the broker binds them: another process may take one in between, and
// the broker then says so in its log.
func (c *Config) choosePorts() error {
	ports := []*int{&c.Port, &c.ControllerPort}
	if c.Secure {
		ports = append(ports, &c.SSLPort)
	}
	for _, port := range ports {
		l, err := net.Listen("tcp", address(*port))
		if err != nil {
			return fmt.Errorf("kafka: broker %s cannot have port %d (0 chooses a free one): %w", c.Name, *port, err)
		}
		defer l.Close() // they stay bound until all are chosen, so that they differ
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return nil
}

// write renders the configuration files.
func (c Config) write() error {
	var text bytes.Buffer
	data := struct {
		Port, ControllerPort int
		DataDir              string
	}{c.Port, c.ControllerPort, filepath.ToSlash(c.dataDir())}
	if err := serverTemplate.Execute(&text, data); err != nil {
		return fmt.Errorf("kafka: render server.properties: %w", err)
	}
	overrides := []map[string]string{c.Properties}
	if c.Secure {
		overrides = []map[string]string{c.secureProperties(), c.Properties}
	}
	for _, properties := range overrides {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			fmt.Fprintf(&text, "%s=%s\n", name, properties[name]) // the last of two lines wins in a properties file
		}
	}
	if err := os.WriteFile(c.properties(), text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	return nil
}

// LoggingFlag is the JVM flag that makes a program with the class path of this package log warnings and the
// lines that matter here to stderr. The file it names is written into the run directory.
func LoggingFlag(dir string) (string, error) {
	file := filepath.Join(dir, "log4j2.properties")
	if err := os.WriteFile(file, log4jProperties, 0o644); err != nil {
		return "", fmt.Errorf("kafka: %w", err)
	}
	return "-Dlog4j2.configurationFile=file:" + file, nil
}

// clusterID is 16 random bytes in URL-safe base64, as Kafka's own tool makes them; a leading '-' would look
// like an option.
func clusterID() (string, error) {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return "", fmt.Errorf("kafka: cluster id: %w", err)
	}
	id[0] &= 0x7f
	return base64.RawURLEncoding.EncodeToString(id[:]), nil
}
