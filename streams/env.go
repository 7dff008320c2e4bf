package streams

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// envPrefix begins the name of every environment variable that FromEnv reads.
const envPrefix = "MILLRACE_"

// FromEnv returns the configuration with every field set for which the environment has a variable: MILLRACE_ and the
// field's name in capitals with underscores, so MILLRACE_APP_ID, MILLRACE_BROKERS (comma separated),
// MILLRACE_COMMIT_INTERVAL (500ms). MILLRACE_GUARANTEE is at_least_once or exactly_once_v2, MILLRACE_MEMBERSHIP static or
// dynamic, MILLRACE_CLOSE_MODE leave or remain, MILLRACE_OFFSET_RESET earliest or latest. MILLRACE_TLS=true turns TLS on;
// MILLRACE_SASL_MECHANISM (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512), MILLRACE_SASL_USER and MILLRACE_SASL_PASSWORD set SASL.
//
// All variables that cannot be read are reported together, by name; passwords are not repeated.
func (c Config) FromEnv() (Config, error) {
	return c.fromEnv(os.LookupEnv)
}

func (c Config) fromEnv(lookup func(string) (string, bool)) (Config, error) {
	var errs []error
	for _, v := range envVars(&c) {
		text, ok := lookup(envPrefix + v.name)
		if !ok {
			continue
		}
		if err := v.set(text); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s%s=%q: %w", envPrefix, v.name, text, err))
		}
	}
	if err := c.saslFromEnv(lookup); err != nil {
		errs = append(errs, err)
	}
	return c, errors.Join(errs...)
}

// envVar is one variable and how its text becomes a field.
type envVar struct {
	name string
	set  func(string) error
}

func envVars(c *Config) []envVar {
	return []envVar{
		{"APP_ID", text(&c.AppID)},
		{"CLIENT_ID", text(&c.ClientID)},
		{"BROKERS", list(&c.Brokers)},
		{"STATE_DIR", text(&c.StateDir)},
		{"THREADS", parsed(&c.Threads, strconv.Atoi)},
		{"GUARANTEE", word(&c.Guarantee, map[string]Guarantee{"at_least_once": AtLeastOnce, "exactly_once_v2": ExactlyOnce})},
		{"COMMIT_INTERVAL", parsed(&c.CommitInterval, time.ParseDuration)},
		{"MEMBERSHIP", word(&c.Membership, map[string]Membership{"static": Static, "dynamic": Dynamic})},
		{"SESSION_TIMEOUT", parsed(&c.SessionTimeout, time.ParseDuration)},
		{"REBALANCE_TIMEOUT", parsed(&c.RebalanceTimeout, time.ParseDuration)},
		{"HEARTBEAT_INTERVAL", parsed(&c.HeartbeatInterval, time.ParseDuration)},
		{"TRANSACTION_TIMEOUT", parsed(&c.TransactionTimeout, time.ParseDuration)},
		{"PROGRESS_TIMEOUT", parsed(&c.ProgressTimeout, time.ParseDuration)},
		{"START_TIMEOUT", parsed(&c.StartTimeout, time.ParseDuration)},
		{"METADATA_MAX_AGE", parsed(&c.MetadataMaxAge, time.ParseDuration)},
		{"CLOSE_TIMEOUT", parsed(&c.CloseTimeout, time.ParseDuration)},
		{"CLOSE_MODE", word(&c.CloseMode, map[string]CloseMode{"leave": Leave, "remain": Remain})},
		{"REMOVE_SURPLUS", parsed(&c.RemoveSurplus, strconv.ParseBool)},
		{"OFFSET_RESET", word(&c.OffsetReset, map[string]OffsetReset{"earliest": Earliest, "latest": Latest})},
		{"REST_ADDR", text(&c.RESTAddr)},
		{"ADVERTISED_ENDPOINT", text(&c.AdvertisedEndpoint)},
		{"REPLICATION_FACTOR", parsed(&c.ReplicationFactor, parseInt16)},
		{"COMPRESSION", text(&c.Compression)},
		{"LINGER", parsed(&c.Linger, time.ParseDuration)},
		{"STATE_MEMORY", parsed(&c.StateMemory, parseInt64)},
		{"STATE_FLUSH_INTERVAL", parsed(&c.StateFlushInterval, time.ParseDuration)},
		{"UNCOMMITTED_MAX_BYTES", parsed(&c.UncommittedMaxBytes, parseInt64)},
		{"BUFFERED_RECORDS", parsed(&c.BufferedRecords, strconv.Atoi)},
		{"FETCH_MAX_BYTES", parsed(&c.FetchMaxBytes, parseInt32)},
		{"TLS", c.tlsFromEnv},
	}
}

func (c *Config) tlsFromEnv(text string) error {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("want true or false")
	}
	if !on {
		c.TLS = nil
	} else if c.TLS == nil {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return nil
}

func (c *Config) saslFromEnv(lookup func(string) (string, bool)) error {
	name, ok := lookup(envPrefix + "SASL_MECHANISM")
	if !ok {
		return nil
	}
	user, _ := lookup(envPrefix + "SASL_USER")
	password, _ := lookup(envPrefix + "SASL_PASSWORD")
	mechanisms := map[string]func() sasl.Mechanism{
		"PLAIN":         func() sasl.Mechanism { return plain.Auth{User: user, Pass: password}.AsMechanism() },
		"SCRAM-SHA-256": func() sasl.Mechanism { return scram.Auth{User: user, Pass: password}.AsSha256Mechanism() },
		"SCRAM-SHA-512": func() sasl.Mechanism { return scram.Auth{User: user, Pass: password}.AsSha512Mechanism() },
	}
	build, ok := mechanisms[strings.ToUpper(name)]
	switch {
	case !ok:
		return fmt.Errorf("environment variable %sSASL_MECHANISM=%q: want PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", envPrefix, name)
	case user == "":
		return fmt.Errorf("environment variable %sSASL_USER is needed with %sSASL_MECHANISM", envPrefix, envPrefix)
	}
	c.SASL = build()
	return nil
}

func text(field *string) func(string) error {
	return func(s string) error { *field = s; return nil }
}

func list(field *[]string) func(string) error {
	return func(s string) error {
		*field = nil
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*field = append(*field, part)
			}
		}
		return nil
	}
}

func parsed[T any](field *T, parse func(string) (T, error)) func(string) error {
	return func(s string) error {
		v, err := parse(s)
		if err == nil {
			*field = v
		}
		return err
	}
}

func word[T any](field *T, words map[string]T) func(string) error {
	return func(s string) error {
		v, ok := words[strings.ToLower(s)]
		if !ok {
			known := slices.Sorted(maps.Keys(words))
			return fmt.Errorf("want %s", strings.Join(known, " or "))
		}
		*field = v
		return nil
	}
}

func parseInt16(s string) (int16, error) {
	v, err := strconv.ParseInt(s, 10, 16)
	return int16(v), err
}

func parseInt32(s string) (int32, error) {
	v, err := strconv.ParseInt(s, 10, 32)
	return int32(v), err
}

func parseInt64(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }
