package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A tail reads the offsets topic behind the appends and tells the coordinator of each transaction marker in it, which
// is the decision about the offsets that were appended in that transaction.
//
// The coordinator wants the reports on transactional appends and on markers in the log's order. A marker behind an
// append is reported after it because both hold order while they report, and the append takes it before it writes. A
// marker before an append of the same producer is reported before it because the answer to EndTxn waits for the tail
// (see front.after), or, after a time-out, carries a higher epoch, which the coordinator compares.
type tail struct {
	broker *broker
	client *kgo.Client
	post   func(coordinator.Event)
	ended  func(producerID int64)
	order  *sync.Mutex
	logger *slog.Logger

	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	next    int64 // every record below it has been reported
	waiters []tailWaiter
}

type tailWaiter struct {
	target  int64
	reached chan struct{}
}

// newTail returns a tail that starts at an offset.
func newTail(b *broker, from int64, logger *slog.Logger, order *sync.Mutex) (*tail, error) {
	client, err := b.newClient(offsetsReader(from)...)
	if err != nil {
		return nil, err
	}
	return &tail{broker: b, client: client, order: order, logger: logger, next: from, done: make(chan struct{})}, nil
}

// offsetsReader reads the offsets topic with everything in it, undecided records and markers too.
func offsetsReader(from int64) []kgo.Opt {
	return []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{offsetsTopic: {0: kgo.NewOffset().At(from)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()),
	}
}

// start begins to read.
func (t *tail) start() {
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	go t.run(ctx)
}

func (t *tail) run(ctx context.Context) {
	defer close(t.done)
	for {
		fetches := t.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return
		}
		fetches.EachError(func(_ string, _ int32, err error) {
			t.logger.Error("the offsets topic cannot be read; offsets of transactions stay undecided", "error", err)
		})
		fetches.EachRecord(t.report)
	}
}

func (t *tail) report(r *kgo.Record) {
	if commit, ok := marker(r); ok {
		t.order.Lock()
		t.post(coordinator.TxnEnded{ProducerID: r.ProducerID, ProducerEpoch: r.ProducerEpoch, Commit: commit})
		t.order.Unlock()
		t.ended(r.ProducerID)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = r.Offset + 1
	kept := t.waiters[:0]
	for _, w := range t.waiters {
		if t.next >= w.target {
			close(w.reached)
		} else {
			kept = append(kept, w)
		}
	}
	t.waiters = kept
}

// marker reports whether the record is a transaction marker, and its decision.
func marker(r *kgo.Record) (commit, ok bool) {
	if !r.Attrs.IsControl() {
		return false, false
	}
	var key kmsg.ControlRecordKey
	if err := key.ReadFrom(r.Key); err != nil {
		return false, false
	}
	switch key.Type {
	case kmsg.ControlRecordKeyTypeCommit:
		return true, true
	case kmsg.ControlRecordKeyTypeAbort:
		return false, true
	}
	return false, false
}

// catchUp waits until everything that is in the log now has been reported.
func (t *tail) catchUp(ctx context.Context) error {
	end, err := t.broker.endOffset(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	if t.next >= end {
		t.mu.Unlock()
		return nil
	}
	reached := make(chan struct{})
	t.waiters = append(t.waiters, tailWaiter{end, reached})
	t.mu.Unlock()
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cluster: reading %s up to offset %d: %w", offsetsTopic, end, ctx.Err())
	case <-t.done:
		return errors.New("cluster: stopped")
	}
}

func (t *tail) close() {
	t.cancel()
	<-t.done
	t.client.Close()
}

// endOffset is the offset behind the last record of the offsets topic, decided or not.
func (b *broker) endOffset(ctx context.Context) (int64, error) {
	return b.listOffset(ctx, offsetsTopic, 0, latest)
}

// startOffset is the offset of the first record of the offsets topic.
func (b *broker) startOffset(ctx context.Context) (int64, error) {
	return b.listOffset(ctx, offsetsTopic, 0, earliest)
}

// stallTimeout is how long the replay may go without a single record before it gives up.
const stallTimeout = 30 * time.Second

// replay reads the offsets topic between two offsets and returns what is in force: the last value of each key, and the
// records of transactions that are still open.
func replay(ctx context.Context, b *broker, start, end int64) ([]coordinator.LogRecord, error) {
	if start >= end {
		return nil, nil
	}
	client, err := b.newClient(offsetsReader(start)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	res := newResolver()
	for at := start; at < end; {
		pollCtx, cancel := context.WithTimeout(ctx, stallTimeout)
		fetches := client.PollFetches(pollCtx)
		cancel()
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("cluster: reading %s at offset %d of %d: %w", offsetsTopic, at, end, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			res.read(r)
			at = r.Offset + 1
		})
	}
	return res.inForce(), nil
}
