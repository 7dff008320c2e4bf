package thread

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/internal/murmur2"
	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/thread/task"
)

// fakeProducer keeps records until the test settles them.
type fakeProducer struct {
	producing // calls that a test does not expect end in a nil pointer
	pending   []func(error)
	offset    int64
	automatic bool // settle at once
}

func (f *fakeProducer) Produce(_ context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	if f.automatic {
		promise(r, nil)
		return
	}
	f.pending = append(f.pending, func(err error) {
		r.Offset = f.offset
		f.offset++
		promise(r, err)
	})
}

func (f *fakeProducer) Flush(context.Context) error { return nil }

func (f *fakeProducer) settle(n int, err error) {
	for _, settle := range f.pending[:n] {
		settle(err)
	}
	f.pending = f.pending[n:]
}

var wordCount = taskid.ID{Subtopology: "words", Partition: 3}

func fill(l *load, n int) {
	for i := range n {
		l.out.Records = append(l.out.Records, task.OutRecord{Partition: -1, Key: []byte("k"), Value: fmt.Append(nil, i)})
	}
}

func TestSinkCountsEveryPromise(t *testing.T) {
	producer := &fakeProducer{}
	s := newSink(t.Context(), producer)
	l := s.load()
	fill(l, 3*slabRecords/2)
	if err := s.send(l, wordCount, []string{"out"}, nil); err != nil {
		t.Fatal(err)
	}
	producer.settle(len(producer.pending)-1, nil)
	if got := s.inFlight(); got == 0 {
		t.Fatal("one record is not settled, but nothing is said to be in flight")
	}
	producer.settle(1, nil)
	if got := s.inFlight(); got != 0 {
		t.Fatalf("%d records in flight after all were settled", got)
	}
	if err := s.drain(); err != nil {
		t.Fatal(err)
	}
	if s.loads.len() != 1 || s.slabs.len() != 2 {
		t.Fatalf("%d loads and %d slabs came back, want 1 and 2", s.loads.len(), s.slabs.len())
	}
}

// A flush that returns early must not be taken for an acknowledgement (KAFKA-19479): drain waits for the promises.
func TestDrainWaitsForPromisesNotForFlush(t *testing.T) {
	producer := &fakeProducer{}
	s := newSink(t.Context(), producer)
	l := s.load()
	fill(l, 10)
	if err := s.send(l, wordCount, []string{"out"}, nil); err != nil {
		t.Fatal(err)
	}
	drained := make(chan error)
	go func() { drained <- s.drain() }()
	producer.settle(9, nil)
	select {
	case err := <-drained:
		t.Fatalf("drained with a record in flight: %v", err)
	default:
	}
	producer.settle(1, nil)
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
}

func TestDrainReportsTheFirstFailureWithItsPlace(t *testing.T) {
	producer := &fakeProducer{}
	s := newSink(t.Context(), producer)
	l := s.load()
	fill(l, 3)
	if err := s.send(l, wordCount, []string{"out"}, nil); err != nil {
		t.Fatal(err)
	}
	tooLarge := errors.New("too large")
	producer.settle(1, nil)
	producer.settle(1, tooLarge)
	producer.settle(1, errors.New("another"))
	err := s.drain()
	var refused *ProduceError
	if !errors.As(err, &refused) || !errors.Is(err, tooLarge) {
		t.Fatalf("drain says %v, want the first failure", err)
	}
	if refused.Task != wordCount || refused.Topic != "out" {
		t.Fatalf("the failure names task %v and topic %q", refused.Task, refused.Topic)
	}
}

func TestChangelogPositionsComeFromAcknowledgements(t *testing.T) {
	producer := &fakeProducer{offset: 40}
	s := newSink(t.Context(), producer)
	l := s.load()
	fill(l, 2)
	l.out.Records[0].Topic, l.out.Records[1].Topic = 1, 2
	topics := []string{"out", "a-changelog", "b-changelog", "c-changelog"}
	if err := s.send(l, wordCount, topics, topics[1:]); err != nil {
		t.Fatal(err)
	}
	producer.settle(2, nil)
	if err := s.drain(); err != nil {
		t.Fatal(err)
	}
	if l.next[0] != 41 || l.next[1] != 42 || l.next[2] != 0 {
		t.Fatalf("positions %v, want 41 and 42, and none for the store without records", l.next)
	}
	o := owned{stores: []string{"a", "b", "c"}, commit: taskCommit{changelog: l}}
	if got := o.changelogPositions(); len(got) != 2 || got[0].Store != "a" || got[0].Next != 41 || got[1].Store != "b" || got[1].Next != 42 {
		t.Fatalf("changelogPositions() = %v", got)
	}
}

func TestSinkWaitsWhenTooMuchIsInFlight(t *testing.T) {
	producer := &fakeProducer{}
	ctx, cancel := context.WithCancelCause(t.Context())
	s := newSink(ctx, producer)
	l := s.load()
	fill(l, maxInFlight+1)
	cut := errors.New("cut short")
	cancel(cut)
	if err := s.send(l, wordCount, []string{"out"}, nil); !errors.Is(err, cut) {
		t.Fatalf("send returned %v, want the cause of the cut", err)
	}
	if len(producer.pending) > maxInFlight {
		t.Fatalf("%d records are in flight, at most %d are allowed", len(producer.pending), maxInFlight)
	}
}

func TestHeadersAreCarriedOver(t *testing.T) {
	producer := &fakeProducer{}
	s := newSink(t.Context(), producer)
	l := s.load()
	fill(l, 2)
	l.out.Records[1].Headers = []topology.Header{{Key: "trace", Value: []byte("7")}}
	b := s.slab()
	b.fill(l, l.out.Records, []string{"out"})
	if len(b.records[0].Headers) != 0 || len(b.records[1].Headers) != 1 || string(b.records[1].Headers[0].Value) != "7" {
		t.Fatalf("headers %v and %v", b.records[0].Headers, b.records[1].Headers)
	}
}

// The producer path is part of the record path: nothing may be allocated per record.
func TestProducingAllocatesNothing(t *testing.T) {
	producer := &fakeProducer{automatic: true}
	s := newSink(t.Context(), producer)
	key, value := []byte("key"), []byte("value")
	topics := []string{"out"}
	const records = 2 * slabRecords
	allocs := testing.AllocsPerRun(100, func() {
		l := s.load()
		for range records {
			l.out.Records = append(l.out.Records, task.OutRecord{Partition: -1, Key: key, Value: value})
		}
		if err := s.send(l, wordCount, topics, nil); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 0 {
		t.Fatalf("%.0f allocations for %d records", allocs, records)
	}
}

func TestPartitioner(t *testing.T) {
	p := partitioner{kgo.StickyKeyPartitioner(nil)}.ForTopic("out")
	const n = 7
	key := []byte("customer-17")
	byKey := p.Partition(&kgo.Record{Key: key, Partition: wanted(&task.OutRecord{Partition: -1})}, n)
	if got := p.Partition(&kgo.Record{Partition: 5, Key: key}, n); got != 5 {
		t.Errorf("an explicit partition 5 became %d", got)
	}
	long := append(append([]byte{}, key...), "-window"...)
	if got := p.Partition(&kgo.Record{Key: long, Partition: wanted(&task.OutRecord{Partition: -1, KeySuffix: int32(len(long) - len(key))})}, n); got != byKey {
		t.Errorf("a windowed key went to partition %d, its key to %d", got, byKey)
	}
	if want := int(murmur2.Partition(key, n)); byKey != want {
		t.Errorf("the key went to partition %d, Kafka's default partitioner says %d", byKey, want)
	}
	if p.RequiresConsistency(&kgo.Record{Partition: -1}) {
		t.Error("a record without a key may go to any partition that can be written")
	}
}
