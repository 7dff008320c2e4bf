package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfigRendersPortsAndOverrides(t *testing.T) {
	cfg, err := Config{Dir: t.TempDir(), Port: 19092, ControllerPort: 19093,
		Properties: map[string]string{"num.partitions": "7"}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(cfg.home(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := cfg.write(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(cfg.properties())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093",
		"controller.quorum.bootstrap.servers=127.0.0.1:19093",
		"log.dirs=" + filepath.ToSlash(cfg.dataDir()),
	} {
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("server.properties has no line %q", line)
		}
	}
	if at := strings.LastIndex(string(text), "num.partitions="); !strings.HasPrefix(string(text)[at:], "num.partitions=7\n") {
		t.Error("the override of num.partitions is not the last word")
	}
}

func TestSecureConfig(t *testing.T) {
	cfg, err := Config{Dir: t.TempDir(), Port: 19092, SSLPort: 19094, ControllerPort: 19093, Secure: true}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(cfg.home(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(cfg.writeSecurity(), cfg.write()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(cfg.properties())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"listeners": "SASL_SSL://127.0.0.1:19092,SSL://127.0.0.1:19094,CONTROLLER://127.0.0.1:19093",
		// nobody reaches it without TLS, not even the broker itself
		"listener.security.protocol.map": "CONTROLLER:SSL,SSL:SSL,SASL_SSL:SASL_SSL",
		"allow.everyone.if.no.acl.found": "false",
	} {
		last := string(text)[strings.LastIndex(string(text), "\n"+name+"=")+1:]
		if !strings.HasPrefix(last, name+"="+want+"\n") {
			t.Errorf("%s is not %s in the end", name, want)
		}
	}
	authority, err := os.ReadFile(cfg.file(CAFile))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	for file, usage := range map[string]x509.ExtKeyUsage{brokerFile: x509.ExtKeyUsageServerAuth, ClientFile: x509.ExtKeyUsageClientAuth} {
		pair, err := tls.LoadX509KeyPair(cfg.file(file), cfg.file(file))
		if err != nil {
			t.Fatal(err)
		}
		options := x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{usage}}
		if file == brokerFile {
			options.DNSName = "127.0.0.1"
		}
		if _, err := pair.Leaf.Verify(options); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestConfigRejectsBadNamesAndPorts(t *testing.T) {
	for _, cfg := range []Config{{Name: "a/b"}, {Name: ".."}, {Port: -1}, {ControllerPort: 70000}, {SSLPort: 70000}} {
		cfg.Dir = t.TempDir()
		if _, err := cfg.withDefaults(); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

func TestPortsDiffer(t *testing.T) {
	var cfg Config
	if err := cfg.choosePorts(); err != nil {
		t.Fatal(err)
	}
	if cfg.Port == 0 || cfg.ControllerPort == 0 || cfg.Port == cfg.ControllerPort {
		t.Errorf("chose ports %d and %d", cfg.Port, cfg.ControllerPort)
	}
}

func TestBusyPortIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := Config{Name: "single", Port: l.Addr().(*net.TCPAddr).Port}
	if err := cfg.choosePorts(); err == nil || !strings.Contains(err.Error(), fmt.Sprint(cfg.Port)) {
		t.Errorf("a busy port: %v", err)
	}
}

// A recorded pid that belongs to another process by now must never be signalled.
func TestReusedPIDIsNotOurs(t *testing.T) {
	started, _ := startOf(os.Getpid())
	if started == "" {
		t.Skip("no /proc on this system: process start times are not known")
	}
	ours := record{PID: os.Getpid(), Started: started}
	if !ours.alive() {
		t.Error("our own process does not count as alive")
	}
	other := record{PID: os.Getpid(), Started: started + "1"}
	if other.alive() {
		t.Error("a process with the right number and another start time counts as the broker")
	}
}

func TestFindSaysNotRunning(t *testing.T) {
	if _, err := Find(t.TempDir(), "none"); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Find: %v, want ErrNotRunning", err)
	}
}

func TestMissingJDKAndMavenAreNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	if _, err := Java(); !errors.Is(err, ErrNoJava) || !strings.Contains(err.Error(), "install") {
		t.Errorf("Java without a JDK: %v", err)
	}
	if _, err := Classpath(context.Background(), t.TempDir()); !errors.Is(err, ErrNoMaven) || !strings.Contains(err.Error(), "install") {
		t.Errorf("Classpath without Maven: %v", err)
	}
}

func TestClasspathWithMissingJarIsNotTrusted(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte("/no/such.jar\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if cp, ok := readClasspath(list); ok {
		t.Errorf("accepted %q", cp)
	}
}

// The life cycle on the real thing: start, kill, start again with the same data and port, stop.
func TestBrokerLifeCycle(t *testing.T) {
	if os.Getenv("KAFKA_BOOTSTRAP") == "" {
		t.Skip("KAFKA_BOOTSTRAP is not set: real brokers run in make test-kafka only")
	}
	ctx := context.Background()
	dir, err := RunDir()
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dir: dir, Name: "lifecycle", Fresh: true}
	b, err := Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Kill() })
	addr := b.Addr()
	topic(t, dir, addr, "--create", "--topic", "kept")
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Fatal("a killed broker accepts connections")
	}
	cfg.Fresh = false
	if b, err = Start(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	if b.Addr() != addr {
		t.Errorf("restarted at %s, was at %s", b.Addr(), addr)
	}
	if found, err := Find(dir, "lifecycle"); err != nil || found.PID() != b.PID() {
		t.Errorf("Find: %v, %v", found, err)
	}
	if list := topic(t, dir, addr, "--list"); !strings.Contains(list, "kept") {
		t.Errorf("topics after the restart: %q", list)
	}
	if err := b.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(dir, "lifecycle"); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after Stop: %v", err)
	}
}

func topic(t *testing.T, dir, addr string, args ...string) string {
	t.Helper()
	cmd, err := Tool(context.Background(), dir, "TopicCommand", append([]string{"--bootstrap-server", addr}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("TopicCommand: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("TopicCommand: %v", err)
	}
	return string(out)
}
