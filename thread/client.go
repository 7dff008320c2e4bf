package thread

import (
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/membership"
)

const (
	// fetchMaxWait bounds how long a fetch may be parked, and with it how long a change of partitions can be held up.
	fetchMaxWait = 500 * time.Millisecond
	// fetchPartitionBytes is how much of one partition a fetch brings.
	fetchPartitionBytes = 1 << 20
	// clientBuffer lets the client buffer what the sink sends without blocking it record by record.
	clientBuffer = 2 * maxInFlight
)

// retryEOF lets clients outlast a broker that dies between accepting a connection and its first answer. They would take that
// for a mistake in the security settings and fail; those were right when the application connected.
var retryEOF = kgo.AlwaysRetryEOF()

func itoa(n int) string { return strconv.Itoa(n) }

// newConsumer makes the client that fetches and that the group requests go through. It knows no group.
func (c *Config) newConsumer() (*kgo.Client, error) {
	opts := append([]kgo.Opt{kgo.FetchMaxPartitionBytes(min(fetchPartitionBytes, c.FetchMaxBytes))}, c.Client...)
	opts = append(opts,
		kgo.ClientID(membership.ConsumerClientID(c.ClientID, c.Index)),
		kgo.FetchMaxWait(fetchMaxWait),
		kgo.FetchMaxBytes(c.FetchMaxBytes),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // a position out of range must be seen, not skipped over
		kgo.WithPools(newRecordPool()),
		kgo.KeepControlRecords(), // positions must pass transaction markers
		retryEOF,
	)
	if c.exactlyOnce() {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("making the consumer of %s: %w", c.name(), err)
	}
	return client, nil
}

// configuredSizes are the largest fetches that the client was made for, also by the user's own options.
func configuredSizes(client *kgo.Client) fetchSizes {
	return fetchSizes{
		max:          client.OptValue(kgo.FetchMaxBytes).(int32),
		maxPartition: client.OptValue(kgo.FetchMaxPartitionBytes).(int32),
	}
}

// newProducer makes a client that produces, transactionally under exactly-once.
func (c *Config) newProducer() (*kgo.Client, error) {
	opts := append([]kgo.Opt{}, c.Client...)
	opts = append(opts,
		kgo.ClientID(c.name()+"-producer"),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(partitioner{kgo.StickyKeyPartitioner(nil)}),
		kgo.ProducerBatchCompression(c.Compression),
		kgo.ProducerLinger(max(c.Linger, 0)),
		kgo.MaxBufferedRecords(clientBuffer),
		retryEOF,
	)
	if c.exactlyOnce() {
		opts = append(opts, kgo.TransactionalID(c.TransactionalID), kgo.TransactionTimeout(c.TransactionTimeout))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("making the producer of %s: %w", c.name(), err)
	}
	return client, nil
}

// partitioner is Kafka's default partitioner for records that do not say their partition (see wanted).
type partitioner struct{ keys kgo.Partitioner }

func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return &topicPartitioner{keys: p.keys.ForTopic(topic)}
}

type topicPartitioner struct {
	keys   kgo.TopicPartitioner
	prefix kgo.Record // stands in for a record of whose key only a part decides
}

// RequiresConsistency tells that the partition must not depend on which partitions can be written now.
func (p *topicPartitioner) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || p.keys.RequiresConsistency(r)
}

// Partition chooses among n partitions. An explicit one that does not exist is refused by the client.
func (p *topicPartitioner) Partition(r *kgo.Record, n int) int {
	if r.Partition >= 0 {
		return int(r.Partition)
	}
	if suffix := int(-1 - r.Partition); suffix > 0 {
		p.prefix.Key = r.Key[:len(r.Key)-suffix]
		return p.keys.Partition(&p.prefix, n)
	}
	return p.keys.Partition(r, n)
}

// OnNewBatch lets records without a key move on to another partition.
func (p *topicPartitioner) OnNewBatch() {
	if sticky, ok := p.keys.(kgo.TopicPartitionerOnNewBatch); ok {
		sticky.OnNewBatch()
	}
}
