package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-io/millrace/membership/coordinator"
)

// startTimeout bounds what the start does after kfake has read its files; the longest of it is reading the offsets
// topic, a million records a second or so.
const startTimeout = 5 * time.Minute

// A Cluster is a running embedded cluster. Its methods are safe for concurrent use.
type Cluster struct {
	dir      *dataDir
	listener *listener
	broker   *broker
	groups   *groups
	log      *offsetLog
	tail     *tail
	intents  *intents
	settings *groupSettings
	recovery Recovery

	coordinating bool // the coordinator's goroutines run

	stopOnce sync.Once
	stopErr  error
}

// Start starts a cluster and returns when it serves clients. The caller ends it with [Cluster.Close].
//
// An error says what to change: the address is in use, the data directory is in use by another cluster or holds
// something else, or its data cannot be read.
func Start(opts ...Option) (*Cluster, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	if err := c.start(cfg); err != nil {
		return nil, errors.Join(err, c.stop(c.abandon))
	}
	return c, nil
}

// start brings the parts up from the inside out. The address comes first, so that one in use changes nothing, and
// clients are let in last, when everything has been read back.
func (c *Cluster) start(cfg config) error {
	var err error
	if c.dir, err = openDataDir(cfg.dataDir); err != nil {
		return err
	}
	if c.listener, err = listen(cfg, cfg.logger); err != nil {
		return err
	}
	if err := c.dir.sign(c.listener.tcp.Addr().String()); err != nil {
		return err
	}
	sequences, err := c.recover(cfg.points)
	if err != nil {
		return err
	}
	if c.broker, err = startBroker(c.dir.path, cfg, c.listener); err != nil {
		return err
	}
	f, err := c.startCoordinator(cfg, sequences)
	if err != nil {
		return err
	}
	c.listener.open(f)
	return nil
}

// recover puts the data directory right and returns where producers stand in the offsets topic.
func (c *Cluster) recover(p points) (sequences map[int64]sequence, err error) {
	clean, err := c.dir.takeClean()
	if err != nil {
		return nil, err
	}
	switch {
	case clean:
		c.recovery = Recovery{Existing: true, Clean: true}
	case c.dir.exists(kfakeMeta):
		if c.recovery, err = recoverLogs(c.dir, p); err != nil {
			return nil, err
		}
	default:
		return map[int64]sequence{}, nil
	}
	if sequences, err = c.dir.sequences(); err != nil {
		return nil, err
	}
	return sequences, restoreEnds(c.dir)
}

func (c *Cluster) startCoordinator(cfg config, sequences map[int64]sequence) (*front, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := c.prepareTopics(ctx, cfg); err != nil {
		return nil, err
	}
	served, err := c.broker.readVersions(ctx)
	if err != nil {
		return nil, err
	}
	served.hold(cfg.profile)
	if c.groups, err = newGroups(cfg, cfg.logger); err != nil {
		return nil, err
	}
	if c.settings, err = readSettings(c.dir); err != nil {
		return nil, err
	}
	records, err := c.loadOffsets(ctx, cfg, served.node, sequences)
	if err != nil {
		return nil, err
	}
	cfg.points.reach(atLoad)
	c.run()
	topics := newTopics(c.broker, c.groups.post)
	if err := topics.refresh(ctx); err != nil {
		return nil, err
	}
	epochs, err := readEpochs(ctx, c.broker)
	if err != nil {
		return nil, err
	}
	c.settings.tell(c.groups.post)
	c.groups.post(coordinator.Loaded{Partition: 0, Records: records})
	return &front{
		versions: served, groups: c.groups, topics: topics, log: c.log, tail: c.tail, intents: c.intents,
		epochs: epochs, dir: c.dir, broker: c.broker, defaultPartitions: cfg.defaultPartitions, logger: cfg.logger, points: cfg.points,
	}, nil
}

// prepareTopics shuts out producers that a crash has cut off and creates what is missing.
func (c *Cluster) prepareTopics(ctx context.Context, cfg config) error {
	cfg.points.reach(atFence)
	if err := fenceNoted(ctx, c.dir, c.broker); err != nil {
		return err
	}
	var err error
	if c.intents, err = openIntents(c.dir); err != nil {
		return err
	}
	if err := c.broker.createTopic(ctx, offsetsTopic, offsetsPartitions, offsetsConfigs); err != nil {
		return err
	}
	for _, t := range cfg.topics {
		if err := c.broker.createTopic(ctx, t.name, t.partitions, nil); err != nil {
			return err
		}
	}
	return nil
}

// loadOffsets reads the offsets topic back and prepares the two ends that keep it from then on.
func (c *Cluster) loadOffsets(ctx context.Context, cfg config, node int32, sequences map[int64]sequence) ([]coordinator.LogRecord, error) {
	topicID, err := c.broker.topicID(ctx, offsetsTopic)
	if err != nil {
		return nil, err
	}
	start, err := c.broker.startOffset(ctx)
	if err != nil {
		return nil, err
	}
	end, err := c.broker.endOffset(ctx)
	if err != nil {
		return nil, err
	}
	records, err := replay(ctx, c.broker, start, end)
	if err != nil {
		return nil, err
	}
	next, err := trim(ctx, c.broker, topicID, node, records, start, end)
	if err != nil {
		return nil, err
	}
	order := &sync.Mutex{}
	c.log = newOffsetLog(c.broker, topicID, node, cfg.logger, order)
	c.log.post, c.log.sequences, c.log.points = c.groups.post, sequences, cfg.points
	for _, r := range records {
		if r.Txn != nil {
			c.log.open[r.Txn.ProducerID] = struct{}{}
		}
	}
	if c.tail, err = newTail(c.broker, next, cfg.logger, order); err != nil {
		return nil, err
	}
	c.tail.post, c.tail.ended = c.groups.post, c.log.decided
	c.groups.log = c.log
	return records, nil
}

// run starts the goroutines of the coordinator.
func (c *Cluster) run() {
	go c.groups.run()
	go c.log.run()
	c.tail.start()
	c.coordinating = true
}

// Brokers returns the addresses to give to a client: one host:port.
func (c *Cluster) Brokers() []string { return []string{c.listener.addr.String()} }

// DataDir returns the directory that holds the data.
func (c *Cluster) DataDir() string { return c.dir.path }

// Recovery tells what the start found and what it had to cut.
func (c *Cluster) Recovery() Recovery { return c.recovery }

// Refused returns how many connections were closed because of what they sent: garbage, oversized frames, requests that
// are not served here.
func (c *Cluster) Refused() int64 { return c.listener.refused.Load() }

// Close cuts all clients off, writes everything to the data directory and releases it, and returns when no goroutine of
// the cluster is left running. Everything that was acknowledged is kept. A second Close, or one after Kill, does
// nothing and returns the first one's error.
func (c *Cluster) Close() error { return c.stop(c.finish) }

// Kill leaves the data directory as a SIGKILL of the process would: nothing is written in order, transactions stay
// open, and the next [Start] has to recover. It is for tests of what comes after. With a temporary directory nothing
// is left.
func (c *Cluster) Kill() error { return c.stop(c.abandon) }

// stop ends the parts from the outside in; end is what to do with kfake.
func (c *Cluster) stop(end func() error) error {
	c.stopOnce.Do(func() {
		if c.listener != nil {
			c.listener.disconnect()
		}
		if c.coordinating {
			c.tail.close()
			c.log.close()
			c.groups.close()
		}
		var errs []error
		if c.broker != nil {
			errs = append(errs, end())
		}
		if c.intents != nil {
			errs = append(errs, c.intents.close())
		}
		if c.dir != nil {
			errs = append(errs, c.dir.release())
		}
		c.stopErr = errors.Join(errs...)
	})
	return c.stopErr
}

// finish stops kfake in order.
func (c *Cluster) finish() error {
	c.broker.stop()
	return c.dir.markClean()
}

// abandon stops kfake and undoes what it wrote while stopping. kfake has no other way to end its goroutines; all that
// it writes while it runs goes to the system at once, so the files as they are before the stop, and without those that
// only a stop writes, are what a killed process leaves behind.
func (c *Cluster) abandon() error {
	kept, err := c.dir.keep(kfakePids, kfakeGroups)
	c.broker.stop()
	if err != nil {
		return err
	}
	if err := c.dir.restore(kept); err != nil {
		return fmt.Errorf("cluster: kill: %w", err)
	}
	return nil
}
