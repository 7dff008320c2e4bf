package streams

import (
	"fmt"
	"log/slog"
	"strings"
)

// String shows the settings that differ from a bare Config, without secrets.
func (c Config) String() string {
	var b strings.Builder
	b.WriteString("streams.Config{")
	for i, a := range c.attrs() {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: %v", a.Key, a.Value)
	}
	b.WriteByte('}')
	return b.String()
}

// GoString is String: %#v must not show secrets either.
func (c Config) GoString() string { return c.String() }

// LogValue implements [slog.LogValuer].
func (c Config) LogValue() slog.Value { return slog.GroupValue(c.attrs()...) }

// attrs lists what may be shown. TLS and SASL are named, never printed: they hold keys and passwords.
func (c Config) attrs() []slog.Attr {
	c = c.withDefaults()
	attrs := []slog.Attr{
		slog.String("AppID", c.AppID),
		slog.String("ClientID", c.ClientID),
		slog.String("Brokers", strings.Join(c.Brokers, ",")),
		slog.String("StateDir", c.StateDir),
		slog.Int("Threads", c.Threads),
		slog.String("Guarantee", c.Guarantee.String()),
		slog.Bool("Static", c.static()),
		slog.Duration("CommitInterval", c.CommitInterval),
		slog.Duration("SessionTimeout", c.SessionTimeout),
		slog.Duration("RebalanceTimeout", c.RebalanceTimeout),
		slog.Duration("HeartbeatInterval", c.HeartbeatInterval),
		slog.String("Compression", c.Compression),
		slog.String("RESTAddr", c.RESTAddr),
		slog.String("AdvertisedEndpoint", c.AdvertisedEndpoint),
	}
	if c.TLS != nil {
		attrs = append(attrs, slog.String("TLS", "configured"))
	}
	if c.SASL != nil {
		attrs = append(attrs, slog.String("SASL", c.SASL.Name()))
	}
	if len(c.KafkaOptions) > 0 {
		attrs = append(attrs, slog.Int("KafkaOptions", len(c.KafkaOptions)))
	}
	return attrs
}
