package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// offsetsTopic is Kafka's own name, so that tools which read it find it.
	offsetsTopic = "__consumer_offsets"

	// offsetsPartitions is one: a single node gains nothing from more, and one log has one order.
	offsetsPartitions = 1

	// offsetsMaxBatch is the topic's max.message.bytes. A group record holds the subscriptions and assignments of all
	// members, and they may carry user data.
	offsetsMaxBatch = "16777216"

	// coalesceBytes is how much of several plain appends goes into one batch.
	coalesceBytes = 256 << 10
)

// offsetsConfigs make the topic look to tools like Kafka's. kfake.is_internal sets the flag in Metadata.
var offsetsConfigs = map[string]string{
	"cleanup.policy":    "compact",
	"max.message.bytes": offsetsMaxBatch,
	"segment.bytes":     offsetsSegment,
	"kfake.is_internal": "true",
}

// An offsetLog appends the coordinator's records to the offsets topic, in the order they are enqueued.
//
// Records of a transaction go into a batch of the client's own transaction: with its producer id, its epoch and the
// transactional bit. kfake adds the partition to the transaction by itself, holds the last stable offset back, and
// writes the marker when the client ends the transaction or lets it time out. So the fate of the offsets and of the
// client's records is one decision, in one place, and [tail] reads it back.
type offsetLog struct {
	broker  *broker
	topicID [16]byte
	node    int32
	post    func(coordinator.Event)
	logger  *slog.Logger
	points  points
	order   *sync.Mutex // held from a transactional append until it is reported; see tail

	mu    sync.Mutex
	queue []coordinator.Append
	open  map[int64]struct{} // producer ids with offsets that no marker has decided

	wake   chan struct{}
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}

	sequences map[int64]sequence // by producer id; run only
}

// A sequence is the next sequence number of a producer in the offsets topic. Each epoch starts at 0.
type sequence struct {
	epoch int16
	next  int32
}

func newOffsetLog(b *broker, topicID [16]byte, node int32, logger *slog.Logger, order *sync.Mutex) *offsetLog {
	ctx, cancel := context.WithCancel(context.Background())
	return &offsetLog{
		broker: b, topicID: topicID, node: node, logger: logger, order: order,
		open:      map[int64]struct{}{},
		wake:      make(chan struct{}, 1),
		ctx:       ctx,
		cancel:    cancel,
		done:      make(chan struct{}),
		sequences: map[int64]sequence{},
	}
}

// enqueue never blocks: the coordinator's loop calls it.
func (l *offsetLog) enqueue(a coordinator.Append) {
	l.mu.Lock()
	l.queue = append(l.queue, a)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run is the appending goroutine.
func (l *offsetLog) run() {
	defer close(l.done)
	for {
		select {
		case <-l.wake:
		case <-l.ctx.Done():
			return
		}
		for batch := l.take(); len(batch) > 0; batch = l.take() {
			l.append(batch)
		}
	}
}

func (l *offsetLog) close() {
	l.cancel()
	<-l.done
}

// take returns what may be written as one batch: one transactional append, or several plain ones.
func (l *offsetLog) take() []coordinator.Append {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, size := 0, 0
	for n < len(l.queue) && size < coalesceBytes {
		a := l.queue[n]
		if a.Txn != nil && n > 0 {
			break
		}
		n++
		if a.Txn != nil {
			break
		}
		for _, r := range a.Records {
			size += len(r.Key) + len(r.Value)
		}
	}
	batch := l.queue[:n:n]
	l.queue = l.queue[n:]
	return batch
}

func (l *offsetLog) append(batch []coordinator.Append) {
	if batch[0].Txn != nil {
		l.order.Lock()
		defer l.order.Unlock()
		l.post(coordinator.Appended{ID: batch[0].ID, Err: l.appendTxn(batch[0])})
		return
	}
	var records []coordinator.Record
	for _, a := range batch {
		records = append(records, a.Records...)
	}
	failed := l.produce(nil, recordBatch(records, nobody))
	for _, a := range batch {
		l.post(coordinator.Appended{ID: a.ID, Err: failed})
	}
}

// appendTxn writes a batch in the name of a client's transaction.
func (l *offsetLog) appendTxn(a coordinator.Append) *kerr.Error {
	txn := *a.Txn
	if err := l.verify(txn); err != nil {
		return err
	}
	s := l.sequences[txn.ProducerID]
	if s.epoch != txn.ProducerEpoch {
		s = sequence{epoch: txn.ProducerEpoch}
	}
	batch := recordBatch(a.Records, producer{id: txn.ProducerID, epoch: txn.ProducerEpoch, sequence: s.next, transactional: true})
	if err := l.produce(&txn.TransactionalID, batch); err != nil {
		return err
	}
	s.next += int32(len(a.Records))
	l.sequences[txn.ProducerID] = s
	l.mu.Lock()
	l.open[txn.ProducerID] = struct{}{}
	l.mu.Unlock()
	return nil
}

// verify asks for the transaction before anything is written in its name. kfake would refuse a zombie's batch too, but
// only after it has opened a transaction for the zombie's successor, which would then time out and fence it.
func (l *offsetLog) verify(txn coordinator.Txn) *kerr.Error {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{txn.TransactionalID}
	resp, err := req.RequestWith(l.ctx, l.broker.client)
	if err != nil || len(resp.TransactionStates) != 1 {
		return l.unavailable(fmt.Errorf("describe transaction %q: %w", txn.TransactionalID, err))
	}
	state := resp.TransactionStates[0]
	switch {
	case state.ErrorCode == kerr.TransactionalIDNotFound.Code, state.ErrorCode == 0 && state.ProducerID != txn.ProducerID:
		return kerr.InvalidProducerIDMapping
	case state.ErrorCode != 0:
		return kerr.TypedErrorForCode(state.ErrorCode)
	case state.ProducerEpoch != txn.ProducerEpoch:
		return kerr.InvalidProducerEpoch
	}
	return nil
}

// produce appends one batch and returns when it is in the log.
func (l *offsetLog) produce(txnID *string, batch []byte) *kerr.Error {
	l.points.reach(atAppend)
	err := l.broker.appendOffsets(l.ctx, l.topicID, l.node, txnID, batch)
	l.points.reach(atAppended)
	if refused, ok := errors.AsType[*kerr.Error](err); ok {
		return refused
	}
	if err != nil {
		return l.unavailable(err)
	}
	return nil
}

// appendOffsets appends a batch to the offsets topic. An error of the broker's is a *kerr.Error.
func (b *broker) appendOffsets(ctx context.Context, topicID [16]byte, node int32, txnID *string, batch []byte) error {
	partition := kmsg.NewProduceRequestTopicPartition()
	partition.Partition, partition.Records = 0, batch
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = offsetsTopic, topicID
	topic.Partitions = append(topic.Partitions, partition)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.TransactionID = -1, 30_000, txnID
	req.Topics = append(req.Topics, topic)

	resp, err := b.client.Broker(int(node)).Request(ctx, req)
	if err != nil {
		return fmt.Errorf("append to %s: %w", offsetsTopic, err)
	}
	for _, t := range resp.(*kmsg.ProduceResponse).Topics {
		for _, p := range t.Partitions {
			return kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return fmt.Errorf("append to %s: the answer names no partition", offsetsTopic)
}

// unavailable turns a failure of the way to the log into the error that lets a client try again.
func (l *offsetLog) unavailable(err error) *kerr.Error {
	if !errors.Is(err, context.Canceled) {
		l.logger.Error("the offsets topic cannot be written", "error", err)
	}
	return kerr.CoordinatorNotAvailable
}

// decided forgets a producer whose transaction has ended.
func (l *offsetLog) decided(producerID int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, producerID)
}

// anyOpen reports whether some transaction holds offsets that no marker has decided.
func (l *offsetLog) anyOpen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open) > 0
}
