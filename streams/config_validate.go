package streams

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/membership"
)

// Validate reports every field that is out of bounds, by name and bound. Zero values stand for defaults and pass.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("streams.Config.%s: %s", field, fmt.Sprintf(format, args...)))
	}
	c.validateNames(bad)
	c.validateAddresses(bad)
	c.validateChoices(bad)
	c.validateTimes(bad)
	c.validateSizes(bad)
	return errors.Join(errs...)
}

// complaint notes that a field is out of bounds.
type complaint func(field, format string, args ...any)

func (c *Config) validateNames(bad complaint) {
	if err := checkAppID(c.AppID); err != nil {
		bad("AppID", "%v", err)
	}
	if c.Membership == Static && c.ClientID == "" {
		bad("ClientID", "is required for static membership: every replica needs a name of its own")
	}
	if c.ClientID != "" {
		if _, err := membership.InstanceID(c.ClientID, max(c.Threads, 1)); err != nil {
			bad("ClientID", "%v", err)
		}
	}
}

func checkAppID(id string) error {
	switch {
	case id == "":
		return errors.New("is required: it names the application's consumer group")
	case len(id) > maxAppID:
		return fmt.Errorf("has %d characters, at most %d are allowed", len(id), maxAppID)
	case id == "." || id == ".." || strings.IndexFunc(id, notTopicChar) >= 0:
		return fmt.Errorf("%q: only letters, digits, '.', '_' and '-' are allowed (but not . or ..), because internal topics carry it", id)
	}
	return nil
}

func notTopicChar(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
}

func (c *Config) validateAddresses(bad complaint) {
	if len(c.Brokers) == 0 {
		bad("Brokers", "at least one host:port is required")
	}
	for _, b := range c.Brokers {
		if strings.TrimSpace(b) == "" {
			bad("Brokers", "contains an empty address")
		} else if err := checkAddress(b, 1); err != nil {
			bad("Brokers", "%v", err)
		}
	}
	if c.RESTAddr != "" {
		if err := checkAddress(c.RESTAddr, 0); err != nil {
			bad("RESTAddr", "%v", err)
		}
	}
	if c.AdvertisedEndpoint != "" {
		if err := checkAddress(c.AdvertisedEndpoint, 1); err != nil {
			bad("AdvertisedEndpoint", "%v", err)
		}
	}
}

// checkAddress reports whether addr is host:port. Whether the host exists is found out by using it.
func checkAddress(addr string, lowestPort uint64) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q is not host:port", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n < lowestPort {
		return fmt.Errorf("%q: the port must be a number from %d to 65535", addr, lowestPort)
	}
	return nil
}

// validateChoices checks the fields that are one of a few values.
func (c *Config) validateChoices(bad complaint) {
	if c.Guarantee > ExactlyOnce {
		bad("Guarantee", "is %d, must be AtLeastOnce or ExactlyOnce", c.Guarantee)
	}
	if c.Membership > Dynamic {
		bad("Membership", "is %d, must be Static, Dynamic or 0", c.Membership)
	}
	if c.CloseMode > Remain {
		bad("CloseMode", "is %d, must be CloseDefault, Leave or Remain", c.CloseMode)
	}
	if c.OffsetReset > Latest {
		bad("OffsetReset", "is %d, must be Earliest or Latest", c.OffsetReset)
	}
	if _, ok := compressions[c.Compression]; !ok {
		bad("Compression", "%q is none of none, gzip, snappy, lz4, zstd", c.Compression)
	}
}

// maxWire is the longest time that Kafka's protocol can tell: milliseconds in 32 bits.
const maxWire = math.MaxInt32 * time.Millisecond

func (c *Config) validateTimes(bad complaint) {
	positive := func(field string, d time.Duration) {
		if d < 0 {
			bad(field, "is %v, must not be negative", d)
		}
	}
	wire := func(field string, d time.Duration) {
		if d < time.Millisecond || d > maxWire {
			bad(field, "is %v, 1ms to %v are allowed", d, maxWire)
		}
	}
	positive("CommitInterval", c.CommitInterval)
	positive("HeartbeatInterval", c.HeartbeatInterval)
	wire("SessionTimeout", c.SessionTimeout)
	wire("RebalanceTimeout", c.RebalanceTimeout)
	wire("TransactionTimeout", c.TransactionTimeout)
	positive("StartTimeout", c.StartTimeout)
	positive("MetadataMaxAge", c.MetadataMaxAge)
	positive("CloseTimeout", c.CloseTimeout)
	positive("StateFlushInterval", c.StateFlushInterval)
	if c.HeartbeatInterval > c.SessionTimeout/3 {
		bad("HeartbeatInterval", "is %v, at most a third of SessionTimeout (%v) is allowed", c.HeartbeatInterval, c.SessionTimeout)
	}
	if c.Guarantee == ExactlyOnce && c.TransactionTimeout <= c.CommitInterval {
		bad("TransactionTimeout", "is %v, must exceed CommitInterval (%v), or the broker aborts every transaction", c.TransactionTimeout, c.CommitInterval)
	}
	if c.Linger > time.Minute {
		bad("Linger", "is %v, at most 1m is allowed", c.Linger)
	}
}

func (c *Config) validateSizes(bad complaint) {
	if c.Threads < 1 || c.Threads > maxThreads {
		bad("Threads", "is %d, 1 to %d are allowed", c.Threads, maxThreads)
	}
	if c.StateMemory < 1<<20 {
		bad("StateMemory", "is %d, at least 1 MiB is needed", c.StateMemory)
	}
	if c.UncommittedMaxBytes < 1<<20 {
		bad("UncommittedMaxBytes", "is %d, at least 1 MiB is needed", c.UncommittedMaxBytes)
	}
	if c.BufferedRecords < 1 || c.BufferedRecords > 1_000_000 {
		bad("BufferedRecords", "is %d, 1 to 1000000 are allowed", c.BufferedRecords)
	}
	if c.FetchMaxBytes < 64<<10 {
		bad("FetchMaxBytes", "is %d, at least 64 KiB is needed", c.FetchMaxBytes)
	}
	if c.ReplicationFactor < -1 {
		bad("ReplicationFactor", "is %d, must be positive, or 0 for the brokers' default", c.ReplicationFactor)
	}
}

// compressions are Kafka's names of the codecs.
var compressions = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}
