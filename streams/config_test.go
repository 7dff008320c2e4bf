package streams

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/millrace-io/millrace/streams/serde"
)

func valid() Config { return Config{AppID: "app", Brokers: []string{"localhost:9092"}} }

func TestZeroConfigNeedsOnlyNameAndBrokers(t *testing.T) {
	if err := valid().Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestValidateNamesFieldAndBound(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   []string
	}{
		{func(c *Config) { c.AppID = "" }, []string{"Config.AppID", "required"}},
		{func(c *Config) { c.AppID = strings.Repeat("a", 151) }, []string{"Config.AppID", "151", "150"}},
		{func(c *Config) { c.AppID = "a/b" }, []string{"Config.AppID", "a/b", "letters"}},
		{func(c *Config) { c.Brokers = nil }, []string{"Config.Brokers"}},
		{func(c *Config) { c.Brokers = []string{" "} }, []string{"Config.Brokers", "empty"}},
		{func(c *Config) { c.Membership = Static }, []string{"Config.ClientID", "static"}},
		{func(c *Config) { c.ClientID = "pod 1" }, []string{"Config.ClientID", "' '"}},
		{func(c *Config) { c.ClientID = strings.Repeat("x", 240) }, []string{"Config.ClientID", "249"}},
		{func(c *Config) { c.Threads = -1 }, []string{"Config.Threads", "-1", "1 to 1000"}},
		{func(c *Config) { c.CommitInterval = -time.Second }, []string{"Config.CommitInterval", "negative"}},
		{func(c *Config) { c.HeartbeatInterval = time.Minute }, []string{"Config.HeartbeatInterval", "third", "45s"}},
		{func(c *Config) { c.Guarantee = ExactlyOnce; c.TransactionTimeout = time.Millisecond }, []string{"Config.TransactionTimeout", "100ms"}},
		{func(c *Config) { c.Compression = "brotli" }, []string{"Config.Compression", "brotli", "zstd"}},
		{func(c *Config) { c.Linger = time.Hour }, []string{"Config.Linger", "1m"}},
		{func(c *Config) { c.StateMemory = 5 }, []string{"Config.StateMemory", "1 MiB"}},
		{func(c *Config) { c.UncommittedMaxBytes = 5 }, []string{"Config.UncommittedMaxBytes"}},
		{func(c *Config) { c.BufferedRecords = -1 }, []string{"Config.BufferedRecords", "-1"}},
		{func(c *Config) { c.FetchMaxBytes = 1 }, []string{"Config.FetchMaxBytes", "64 KiB"}},
		{func(c *Config) { c.ReplicationFactor = -2 }, []string{"Config.ReplicationFactor", "-2"}},
		{func(c *Config) { c.StateFlushInterval = -1 }, []string{"Config.StateFlushInterval"}},
		{func(c *Config) { c.Brokers = []string{"localhost"} }, []string{"Config.Brokers", "localhost", "host:port"}},
		{func(c *Config) { c.Brokers = []string{"a:0"} }, []string{"Config.Brokers", "a:0", "1 to 65535"}},
		{func(c *Config) { c.RESTAddr = "here" }, []string{"Config.RESTAddr", "here", "host:port"}},
		{func(c *Config) { c.RESTAddr = ":70000" }, []string{"Config.RESTAddr", "70000", "65535"}},
		{func(c *Config) { c.AdvertisedEndpoint = "a:http" }, []string{"Config.AdvertisedEndpoint", "a:http"}},
		{func(c *Config) { c.Guarantee = 9 }, []string{"Config.Guarantee", "9", "ExactlyOnce"}},
		{func(c *Config) { c.Membership = 9 }, []string{"Config.Membership", "9", "Dynamic"}},
		{func(c *Config) { c.CloseMode = 9 }, []string{"Config.CloseMode", "9", "Remain"}},
		{func(c *Config) { c.OffsetReset = 9 }, []string{"Config.OffsetReset", "9", "Latest"}},
		{func(c *Config) { c.SessionTimeout = time.Microsecond }, []string{"Config.SessionTimeout", "1ms"}},
		{func(c *Config) { c.RebalanceTimeout = 1000 * time.Hour }, []string{"Config.RebalanceTimeout", "1000h", "596h"}},
		{func(c *Config) { c.TransactionTimeout = -1 }, []string{"Config.TransactionTimeout", "1ms"}},
	} {
		cfg := valid()
		c.change(&cfg)
		err := cfg.Validate()
		for _, w := range c.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("error %v does not mention %q", err, w)
			}
		}
	}
}

func TestNewReportsAllMistakesTogether(t *testing.T) {
	_, err := New(NewBuilder(), Config{Threads: -5})
	for _, w := range []string{"Config.AppID", "Config.Brokers", "Config.Threads"} {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("error %v does not mention %q", err, w)
		}
	}
}

func TestNewTellsOfABadApplicationIDOnce(t *testing.T) {
	b := NewBuilder()
	b.Stream("in", serde.String, serde.String).GroupByKey().Count("counts")
	cfg := valid()
	cfg.AppID = "a/b"
	if _, err := New(b, cfg); err == nil || strings.Count(err.Error(), "a/b") != 1 {
		t.Errorf("got %v, want one mention of a/b", err)
	}
	if _, err := New(nil, valid()); err == nil || !strings.Contains(err.Error(), "builder is nil") {
		t.Errorf("without a builder: %v", err)
	}
}

func TestConfigShowsNoSecrets(t *testing.T) {
	cfg := valid()
	cfg.SASL = plain.Auth{User: "miller", Pass: "hunter2"}.AsMechanism()
	cfg.TLS = &tls.Config{ServerName: "broker.internal"}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("start", "config", cfg)
	for _, printed := range []string{cfg.String(), fmt.Sprint(cfg), fmt.Sprintf("%+v", cfg), fmt.Sprintf("%#v", cfg), log.String()} {
		if strings.Contains(printed, "hunter2") {
			t.Errorf("the password is in %s", printed)
		}
		if !strings.Contains(printed, "PLAIN") || !strings.Contains(printed, "localhost:9092") {
			t.Errorf("mechanism or brokers are missing in %s", printed)
		}
	}
}

func TestFromEnv(t *testing.T) {
	env := map[string]string{
		"MILLRACE_APP_ID": "words", "MILLRACE_CLIENT_ID": "pod-3", "MILLRACE_BROKERS": "a:1, b:2", "MILLRACE_THREADS": "4",
		"MILLRACE_GUARANTEE": "exactly_once_v2", "MILLRACE_COMMIT_INTERVAL": "250ms", "MILLRACE_REPLICATION_FACTOR": "3",
		"MILLRACE_CLOSE_MODE": "leave", "MILLRACE_TLS": "true", "MILLRACE_SASL_MECHANISM": "scram-sha-512",
		"MILLRACE_SASL_USER": "miller", "MILLRACE_SASL_PASSWORD": "hunter2", "MILLRACE_STATE_MEMORY": "1048576",
	}
	cfg, err := Config{Threads: 1, Linger: time.Second}.fromEnv(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	if cfg.AppID != "words" || cfg.ClientID != "pod-3" || len(cfg.Brokers) != 2 || cfg.Brokers[1] != "b:2" || cfg.Threads != 4 ||
		cfg.Guarantee != ExactlyOnce || cfg.CommitInterval != 250*time.Millisecond || cfg.ReplicationFactor != 3 ||
		cfg.CloseMode != Leave || cfg.TLS == nil || cfg.SASL == nil || cfg.SASL.Name() != "SCRAM-SHA-512" || cfg.StateMemory != 1<<20 {
		t.Errorf("read %v", cfg)
	}
	if cfg.Linger != time.Second {
		t.Error("a field without variable was changed")
	}
}

func TestFromEnvReportsEveryBadVariableAndNoPassword(t *testing.T) {
	env := map[string]string{
		"MILLRACE_THREADS": "many", "MILLRACE_GUARANTEE": "twice", "MILLRACE_COMMIT_INTERVAL": "5", "MILLRACE_TLS": "maybe",
		"MILLRACE_SASL_MECHANISM": "GSSAPI", "MILLRACE_SASL_PASSWORD": "hunter2",
	}
	_, err := Config{}.fromEnv(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err == nil {
		t.Fatal("no error")
	}
	for _, w := range []string{"MILLRACE_THREADS", "MILLRACE_GUARANTEE", "exactly_once_v2", "MILLRACE_COMMIT_INTERVAL", "MILLRACE_TLS", "MILLRACE_SASL_MECHANISM"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error does not mention %s:\n%v", w, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Error("the password is in the error")
	}
}
