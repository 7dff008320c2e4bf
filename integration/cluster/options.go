package cluster

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/millrace-io/millrace/membership/coordinator"
)

// An Option changes how [Start] starts a cluster.
type Option func(*config)

type config struct {
	dataDir           string
	listen            string
	advertise         string
	topics            []topicSpec
	profile           coordinator.Profile
	rebalanceDelay    time.Duration
	defaultPartitions int32
	syncWrites        bool
	logger            *slog.Logger
	points            points // of logger
}

type topicSpec struct {
	name       string
	partitions int32
}

func newConfig(opts []Option) (config, error) {
	cfg := config{
		listen:            "127.0.0.1:0",
		profile:           coordinator.Kafka,
		defaultPartitions: 1,
		logger:            slog.New(slog.DiscardHandler),
	}
	for _, opt := range opts {
		opt(&cfg)
	}
	cfg.points = newPoints(cfg.logger)
	return cfg, cfg.validate()
}

func (c *config) validate() error {
	if _, _, err := net.SplitHostPort(c.listen); err != nil {
		return fmt.Errorf("cluster: listen address %q: %w (want host:port, port 0 picks a free one)", c.listen, err)
	}
	if c.advertise != "" {
		if _, _, err := net.SplitHostPort(c.advertise); err != nil {
			return fmt.Errorf("cluster: advertised address %q: %w (want host:port)", c.advertise, err)
		}
	}
	if c.rebalanceDelay < 0 {
		return fmt.Errorf("cluster: initial rebalance delay %v: must not be negative", c.rebalanceDelay)
	}
	if c.defaultPartitions < 1 {
		return fmt.Errorf("cluster: default partitions %d: must be at least 1", c.defaultPartitions)
	}
	for _, t := range c.topics {
		if t.partitions < 1 {
			return fmt.Errorf("cluster: topic %q: partitions %d: must be at least 1", t.name, t.partitions)
		}
		if why := topicNameFault(t.name); why != "" {
			return fmt.Errorf("cluster: %s", why)
		}
		if t.name == offsetsTopic {
			return fmt.Errorf("cluster: topic %q is the coordinator's own; choose another name", t.name)
		}
	}
	return nil
}

// DataDir keeps everything below dir, which is created if needed and locked while the cluster runs. Start on the same
// directory continues where the last cluster stopped, however it stopped. Without it a temporary directory is used and
// removed by [Cluster.Close].
func DataDir(dir string) Option { return func(c *config) { c.dataDir = dir } }

// Listen sets the host:port that clients connect to; the default is a free port on 127.0.0.1. The protocol has no
// authentication here: any other host than loopback opens the cluster to the network.
func Listen(addr string) Option { return func(c *config) { c.listen = addr } }

// Advertise sets the host:port that the cluster tells its clients to connect to, for a listen address that they cannot
// reach, such as 0.0.0.0 or the inside of a container. The default is the listen address, and 127.0.0.1 for a wildcard.
func Advertise(addr string) Option { return func(c *config) { c.advertise = addr } }

// Topic creates a topic at the start if it does not exist; an existing one stays as it is. It may be given repeatedly.
func Topic(name string, partitions int32) Option {
	return func(c *config) { c.topics = append(c.topics, topicSpec{name, partitions}) }
}

// Profile chooses the coordinator's rules: coordinator.Kafka (the default) answers like Apache Kafka,
// coordinator.KIP345 keeps the promises of static membership where Kafka breaks them.
func Profile(p coordinator.Profile) Option { return func(c *config) { c.profile = p } }

// InitialRebalanceDelay is group.initial.rebalance.delay.ms: how long the first rebalance of an empty group waits for
// further members. The default is 0, as in Kafka's quick start; Kafka's own default is 3 s.
func InitialRebalanceDelay(d time.Duration) Option {
	return func(c *config) { c.rebalanceDelay = d }
}

// DefaultPartitions is the number of partitions of a topic that is created without one. The default is 1.
func DefaultPartitions(n int32) Option { return func(c *config) { c.defaultPartitions = n } }

// SyncWrites lets no record be acknowledged, and no marker follow another, before the disk has it. It costs two waits for the
// disk a batch. What the cluster keeps beside the records is not synced, so it is no remedy against power failures.
func SyncWrites() Option { return func(c *config) { c.syncWrites = true } }

// Logger receives what the cluster has to say; the default is silence.
func Logger(l *slog.Logger) Option { return func(c *config) { c.logger = l } }
