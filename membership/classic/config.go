package classic

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/assign"
	"github.com/millrace-io/millrace/membership/codec"
)

// Defaults of [Config].
const (
	DefaultSessionTimeout    = 45 * time.Second
	DefaultRebalanceTimeout  = 60 * time.Second
	DefaultHeartbeatInterval = 3 * time.Second
	DefaultStartTimeout      = 30 * time.Second
)

// Config describes one group member. Functions are called from the driver's goroutine and must return at once.
type Config struct {
	// Client carries the requests. It must have no group of its own; it stays the caller's.
	Client *kgo.Client
	Group  string
	// ClientID is only for log lines.
	ClientID string
	// InstanceID makes the member static; see [membership.InstanceID].
	InstanceID string

	// SessionTimeout is how long the coordinator keeps the place of a member that is silent. Default 45 s.
	SessionTimeout time.Duration
	// RebalanceTimeout is how long a rebalance waits for this member. Default 60 s.
	RebalanceTimeout time.Duration
	// HeartbeatInterval is the time between heartbeats. Default 3 s.
	HeartbeatInterval time.Duration
	// StartTimeout bounds how long [Start] looks for a broker. Default 30 s.
	StartTimeout time.Duration

	// Topics are the topics that the application reads, for Kafka's tools.
	Topics []string
	// Subscription says what the member has to tell the leader, at each join. Owned, Standby and Generation are
	// filled in by the driver.
	Subscription func() codec.Subscription
	// Tasks says what there is to assign, with source partitions.
	Tasks func() []assign.Task
	// Standbys is the number of copies of a stateful task beside the active one.
	Standbys int

	// Logger gets rebalances and retries. Default: none.
	Logger *slog.Logger
}

func (cfg Config) withDefaults() Config {
	setDefault(&cfg.SessionTimeout, DefaultSessionTimeout)
	setDefault(&cfg.RebalanceTimeout, DefaultRebalanceTimeout)
	setDefault(&cfg.HeartbeatInterval, DefaultHeartbeatInterval)
	setDefault(&cfg.StartTimeout, DefaultStartTimeout)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// validate reports every field that cannot work, by name and bound. cfg has its defaults.
func (cfg Config) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("group member: "+format, args...))
		}
	}
	check(cfg.Client != nil, "Client is required")
	check(cfg.Group != "", "Group is required")
	check(cfg.Subscription != nil, "Subscription is required")
	check(cfg.Tasks != nil, "Tasks is required")
	check(cfg.Standbys >= 0, "Standbys is %d, want 0 or more", cfg.Standbys)
	for name, d := range map[string]time.Duration{
		"SessionTimeout": cfg.SessionTimeout, "RebalanceTimeout": cfg.RebalanceTimeout,
		"HeartbeatInterval": cfg.HeartbeatInterval, "StartTimeout": cfg.StartTimeout,
	} {
		check(d >= time.Millisecond, "%s is %v, want at least 1ms", name, d)
	}
	check(cfg.HeartbeatInterval < cfg.SessionTimeout, "HeartbeatInterval is %v, want less than SessionTimeout (%v)", cfg.HeartbeatInterval, cfg.SessionTimeout)
	return errors.Join(errs...)
}

// member is the part of the configuration that the machine needs.
func (cfg Config) member() membership.Config {
	return membership.Config{
		Group: cfg.Group, InstanceID: cfg.InstanceID, HeartbeatInterval: cfg.HeartbeatInterval, Topics: cfg.Topics,
		Subscription: cfg.Subscription, Tasks: cfg.Tasks, Standbys: cfg.Standbys,
	}
}

// instance is the instance id as requests carry it.
func (cfg Config) instance() *string {
	if cfg.InstanceID == "" {
		return nil
	}
	return &cfg.InstanceID
}
