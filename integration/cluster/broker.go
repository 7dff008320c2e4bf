package cluster

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// never is a period, in milliseconds, that no cluster lives to see and that still fits a time.Duration.
const never = int64(math.MaxInt64 / int64(time.Millisecond) / 4)

// brokerConfigs are what the broker is configured with and what DescribeConfigs tells of it.
//
// The first ones keep kfake's cleaner and retention from running. Its retention looks at event time and ignores
// cleanup.policy, so that it would empty a changelog of old events; its compaction is neither crash safe nor aware of
// open transactions. The embedded cluster therefore keeps every record. The others are the coordinator's.
func brokerConfigs(cfg config) map[string]string {
	return map[string]string{
		"log.retention.ms":                 "-1",
		"log.cleaner.backoff.ms":           strconv.FormatInt(never, 10),
		"offsets.retention.minutes":        strconv.Itoa(10 * 365 * 24 * 60),
		"group.min.session.timeout.ms":     strconv.FormatInt(minSessionTimeout.Milliseconds(), 10),
		"group.max.session.timeout.ms":     strconv.FormatInt(maxSessionTimeout.Milliseconds(), 10),
		"group.initial.rebalance.delay.ms": strconv.FormatInt(cfg.rebalanceDelay.Milliseconds(), 10),
		"offsets.topic.num.partitions":     strconv.Itoa(offsetsPartitions),
		"default.replication.factor":       "1",
	}
}

// Kafka's group.min.session.timeout.ms and group.max.session.timeout.ms.
const (
	minSessionTimeout = 6 * time.Second
	maxSessionTimeout = 30 * time.Minute
)

// A broker is kfake with one node, and the cluster's own client of it, whose connections are in-memory pipes.
type broker struct {
	kfake  *kfake.Cluster
	client *kgo.Client
	dial   func(ctx context.Context, network, host string) (net.Conn, error)
	addr   string
}

// startBroker starts kfake behind l, on the data in dir.
func startBroker(dir string, cfg config, l *listener) (*broker, error) {
	opts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.DataDir(dir),
		kfake.ClusterID(newClusterID()),
		kfake.ListenFn(func(_, _ string) (net.Listener, error) { return l, nil }),
		kfake.BrokerConfigs(brokerConfigs(cfg)),
		kfake.MaxVersions(kfakeVersions()),
		kfake.DefaultNumPartitions(int(cfg.defaultPartitions)),
		kfake.WithLogger(kfakeLogger{cfg.logger}),
	}
	if cfg.syncWrites {
		opts = append(opts, kfake.SyncWrites())
	}
	k, err := kfake.NewCluster(opts...)
	if err != nil {
		return nil, fmt.Errorf("cluster: data in %s cannot be opened: %w", dir, err)
	}
	b := &broker{kfake: k, dial: l.dial, addr: l.addr.String()}
	if b.client, err = b.newClient(); err != nil {
		k.Close()
		return nil, err
	}
	return b, nil
}

// newClient returns a client whose connections reach kfake through memory, past the guard.
func (b *broker) newClient(opts ...kgo.Opt) (*kgo.Client, error) {
	opts = append(opts,
		kgo.SeedBrokers(b.addr),
		kgo.Dialer(b.dial),
		kgo.ClientID("millrace-cluster"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("cluster: internal client: %w", err)
	}
	return client, nil
}

// newClusterID returns 16 random bytes as Kafka prints them. An existing data directory keeps its id.
func newClusterID() string {
	var id [16]byte
	rand.Read(id[:])
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// readVersions asks kfake what it serves.
func (b *broker) readVersions(ctx context.Context) (*versions, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "millrace", "1"
	resp, err := req.RequestWith(ctx, b.client)
	if err != nil {
		return nil, fmt.Errorf("cluster: ApiVersions: %w", err)
	}
	meta, err := b.metadata(ctx)
	if err != nil {
		return nil, err
	}
	if meta.ClusterID == nil || len(meta.Brokers) != 1 {
		return nil, errors.New("cluster: Metadata names no cluster id or not exactly one broker")
	}
	return newVersions(resp, *meta.ClusterID, meta.Brokers[0].NodeID), nil
}

// metadata describes all topics.
func (b *broker) metadata(ctx context.Context) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = nil // all
	resp, err := req.RequestWith(ctx, b.client)
	if err != nil {
		return nil, fmt.Errorf("cluster: Metadata: %w", err)
	}
	return resp, nil
}

// createTopic creates a topic unless it exists.
func (b *broker) createTopic(ctx context.Context, name string, partitions int32, configs map[string]string) error {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	for key, value := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = key, &value
		topic.Configs = append(topic.Configs, c)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, b.client)
	if err != nil {
		return fmt.Errorf("cluster: create topic %s: %w", name, err)
	}
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("cluster: create topic %s: %w", name, err)
		}
	}
	return nil
}

// Timestamps of ListOffsets.
const (
	latest   = -1
	earliest = -2
)

// listOffset finds the first or the next offset of a partition, open transactions included.
func (b *broker) listOffset(ctx context.Context, topic string, partition int32, timestamp int64) (int64, error) {
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Partition, rp.Timestamp = partition, timestamp
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	rt.Partitions = append(rt.Partitions, rp)
	req := kmsg.NewPtrListOffsetsRequest()
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, b.client)
	if err != nil {
		return 0, fmt.Errorf("cluster: ListOffsets of %s-%d: %w", topic, partition, err)
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return 0, fmt.Errorf("cluster: ListOffsets of %s-%d does not name that partition alone", topic, partition)
	}
	answer := resp.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		return 0, fmt.Errorf("cluster: ListOffsets of %s-%d: %w", topic, partition, err)
	}
	return answer.Offset, nil
}

// stop writes kfake's state to the data directory and ends it.
func (b *broker) stop() {
	b.client.Close()
	b.kfake.Close()
}

// kfakeLogger passes kfake's log on. kfake says "info" to each request that it cannot handle.
type kfakeLogger struct{ to *slog.Logger }

func (l kfakeLogger) Logf(level kfake.LogLevel, format string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case kfake.LogLevelError:
		to = slog.LevelError
	case kfake.LogLevelWarn:
		to = slog.LevelWarn
	}
	if l.to.Enabled(context.Background(), to) {
		l.to.Log(context.Background(), to, fmt.Sprintf(format, args...), "component", "kfake")
	}
}
