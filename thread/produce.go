package thread

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/thread/task"
)

const (
	// maxInFlight is how many records may be produced and not acknowledged before the thread waits. It bounds memory, and
	// keeps the wait in the thread's hands rather than in the client's, which would block it record by record.
	maxInFlight = 16 << 10
	// slabRecords is the size of a slab, and how many records go to the client between two looks at maxInFlight.
	slabRecords = 1 << 10
	// reportEvery is how many promises run between two reports to the thread.
	reportEvery = 256
	// spareSlabs and spareLoads bound what is kept for reuse: what can be in flight in turns of full length, and the
	// changelogs of some tasks. Fewer loads than are in flight would make garbage of an outbox every turn.
	spareSlabs, spareLoads = 2 * maxInFlight / slabRecords, maxInFlight/maxTurnRecords + 8
)

// sink produces the outboxes of a thread's tasks and counts what became of every record. The thread's goroutine owns it;
// only the promises of the client run elsewhere, and they touch slabs, spares and atomics only.
type sink struct {
	client producing
	ctx    context.Context // ends what waits when the thread is cut short

	sent  int64                        // records given to the client
	done  atomic.Int64                 // records whose promise ran, acknowledged or failed
	cause atomic.Pointer[ProduceError] // the first failure

	progress chan struct{} // holds a token after done moved
	slabs    spares[*slab]
	loads    spares[*load]
}

func newSink(ctx context.Context, client producing) *sink {
	return &sink{
		client:   client,
		ctx:      ctx,
		progress: make(chan struct{}, 1),
		slabs:    spares[*slab]{most: spareSlabs},
		loads:    spares[*load]{most: spareLoads},
	}
}

// ProduceError tells which record the brokers refused first.
type ProduceError struct {
	Task      taskid.ID
	Topic     string
	Partition int32
	Err       error
}

func (e *ProduceError) Error() string {
	return fmt.Sprintf("task %v: producing to %s partition %d: %v", e.Task, e.Topic, e.Partition, e.Err)
}

// Unwrap returns the cause.
func (e *ProduceError) Unwrap() error { return e.Err }

// load is one outbox on its way. Its bytes are reused once every record in it is settled.
type load struct {
	out  *task.Outbox
	task taskid.ID

	// Written by the client's promises, which run one after another; read by the thread when sink.drain has said that all
	// of them ran.
	left       int
	changelogs []string // topics of the task's stores when this is a changelog, nil otherwise
	next       []int64  // per store: the offset after the highest acknowledged one; 0 when none was
}

// slab is a run of client records made of a load. They share one promise, so that producing allocates nothing.
type slab struct {
	sink    *sink
	load    *load
	records []kgo.Record
	headers []kgo.RecordHeader
	promise func(*kgo.Record, error) // settle as a value, made once

	left, unreported int // written by promises only, while any is to come
}

// load returns an empty load, with an outbox to swap into a task.
func (s *sink) load() *load {
	if l, ok := s.loads.take(); ok {
		return l
	}
	return &load{out: new(task.Outbox)}
}

func (s *sink) slab() *slab {
	if b, ok := s.slabs.take(); ok {
		return b
	}
	b := &slab{sink: s}
	b.promise = b.settle
	return b
}

// send produces what the load's outbox holds. topics translates the outbox' topic indexes. With changelogs set the caller
// keeps the load, and recycles it after it has read next; otherwise the load recycles itself.
func (s *sink) send(l *load, id taskid.ID, topics, changelogs []string) error {
	out := l.out.Records
	l.task, l.left, l.changelogs, l.next = id, len(out), changelogs, nil
	if changelogs != nil {
		l.next = make([]int64, len(changelogs))
	} else if len(out) == 0 {
		s.recycle(l)
		return nil
	}
	for at := 0; at < len(out); at += slabRecords {
		if err := s.awaitRoom(); err != nil {
			return err
		}
		b := s.slab()
		b.fill(l, out[at:min(at+slabRecords, len(out))], topics)
		records := b.records // b is no longer ours once its last record is given away
		s.sent += int64(len(records))
		for i := range records {
			s.client.Produce(s.ctx, &records[i], b.promise)
		}
	}
	return nil
}

// fill makes the client's records. They alias the outbox' bytes.
func (b *slab) fill(l *load, out []task.OutRecord, topics []string) {
	if cap(b.records) < len(out) {
		b.records = make([]kgo.Record, len(out))
	}
	b.load, b.records, b.headers = l, b.records[:len(out)], b.headers[:0]
	b.left, b.unreported = len(out), 0
	for i := range out {
		o := &out[i]
		b.records[i] = kgo.Record{
			Topic:     topics[o.Topic],
			Partition: wanted(o),
			Key:       o.Key,
			Value:     o.Value,
			Timestamp: time.UnixMilli(o.Timestamp),
		}
		if len(o.Headers) > 0 {
			b.records[i].Headers = b.addHeaders(o)
		}
	}
}

// wanted tells the partitioner what the record's partition is to be: the partition itself, or a negative number that says
// how much at the end of the key does not count.
func wanted(o *task.OutRecord) int32 {
	if o.Partition >= 0 {
		return o.Partition
	}
	return -1 - o.KeySuffix
}

func (b *slab) addHeaders(o *task.OutRecord) []kgo.RecordHeader {
	from := len(b.headers)
	for _, h := range o.Headers {
		b.headers = append(b.headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return b.headers[from:len(b.headers):len(b.headers)]
}

// settle is the promise of every record of the slab. The client calls promises one after another, never two at a time.
// A record is reported only after all that the promise touches is done with, because the thread may go on at that moment.
func (b *slab) settle(r *kgo.Record, err error) {
	s, l := b.sink, b.load
	if err != nil {
		s.cause.CompareAndSwap(nil, &ProduceError{Task: l.task, Topic: r.Topic, Partition: r.Partition, Err: err})
	} else if l.changelogs != nil {
		l.acknowledged(r)
	}
	b.unreported++
	b.left--
	l.left--
	if b.left > 0 && b.unreported < reportEvery {
		return
	}
	n := b.unreported
	b.unreported = 0
	if l.left == 0 && l.changelogs == nil {
		s.recycle(l)
	}
	if b.left == 0 {
		s.recycleSlab(b)
	}
	s.done.Add(int64(n))
	select {
	case s.progress <- struct{}{}:
	default:
	}
}

// acknowledged notes the position after a changelog record.
func (l *load) acknowledged(r *kgo.Record) {
	for i, topic := range l.changelogs {
		if topic == r.Topic {
			l.next[i] = max(l.next[i], r.Offset+1)
			return
		}
	}
}

// recycle keeps a load whose records are all settled for reuse.
func (s *sink) recycle(l *load) {
	l.out.Reset()
	l.changelogs, l.next = nil, nil
	s.loads.keep(l)
}

func (s *sink) recycleSlab(b *slab) {
	b.load = nil
	s.slabs.keep(b)
}

// inFlight is how many records are produced and not settled.
func (s *sink) inFlight() int64 { return s.sent - s.done.Load() }

// awaitRoom waits until there is room for another chunk.
func (s *sink) awaitRoom() error {
	for s.inFlight() > maxInFlight-slabRecords {
		if err := s.err(); err != nil {
			return err
		}
		select {
		case <-s.progress:
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
	return nil
}

// drain is C2: it returns nil only when every record that was ever sent has been acknowledged. Flush alone does not say
// so: it ends when nothing is buffered, whatever became of it (KAFKA-19479 lost output by trusting a flush).
func (s *sink) drain() error {
	if s.inFlight() > 0 {
		if err := s.client.Flush(s.ctx); err != nil {
			return fmt.Errorf("waiting for the brokers to acknowledge what was produced: %w", err)
		}
	}
	for s.inFlight() > 0 {
		select {
		case <-s.progress:
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
	return s.err()
}

// err is the first failure, nil while there is none.
func (s *sink) err() error {
	if e := s.cause.Load(); e != nil {
		return e
	}
	return nil
}
