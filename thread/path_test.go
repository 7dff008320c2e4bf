package thread

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/thread/task"
)

// copier is a source node that sends every record on as it is.
type copier struct{ sink topology.Sink }

func (c *copier) Process(r *topology.Record) error {
	buf := append(c.sink.Buffer(), r.Key...)
	cut := len(buf)
	buf = append(buf, r.Value...)
	c.sink.Emit(topology.Emission{Buf: buf, Cut: cut, Timestamp: r.Timestamp})
	return nil
}

// copying returns a thread without clients that copies partition 3 of topic "in" to topic "out".
func copying(tb testing.TB, producer *fakeProducer) (*Thread, *owned) {
	tb.Helper()
	var g topology.Graph
	source := g.Add(topology.Node{Kind: topology.Source, Name: "source", Topics: []string{"in"},
		Build: func(rt topology.Runtime, _ []any) (topology.Built, error) {
			sink, err := rt.Sink("out", false)
			return topology.Built{Entry: &copier{sink}}, err
		}})
	g.Add(topology.Node{Kind: topology.SinkKind, Name: "sink", Topics: []string{"out"}, Parents: []topology.NodeID{source},
		Build: func(topology.Runtime, []any) (topology.Built, error) { return topology.Built{}, nil }})
	plan, err := g.Build("app")
	if err != nil {
		tb.Fatal(err)
	}
	o := &owned{id: wordCount, topics: []string{"out"}}
	if o.task, err = task.New(task.Config{ID: o.id, Sub: &plan.Subtopologies[0], Stats: &o.stats}); err != nil {
		tb.Fatal(err)
	}
	t := &Thread{
		cfg: &Config{}, log: slog.New(slog.DiscardHandler), stats: new(Stats), batch: maxTurnRecords, tasks: []*owned{o},
		sink:   newSink(tb.Context(), producer),
		routes: map[partition]*route{{"in", 3}: {owner: o}},
	}
	return t, o
}

// batchAt makes a fetched batch of n records.
func batchAt(topic string, index int32, from int64, n int) kgo.Fetches {
	p := kgo.FetchPartition{Partition: index}
	for i := range n {
		p.Records = append(p.Records, &kgo.Record{
			Topic: topic, Partition: index, Offset: from + int64(i), Key: []byte("key"), Value: fmt.Append(nil, i), Timestamp: time.UnixMilli(1000),
		})
	}
	return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: topic, Partitions: []kgo.FetchPartition{p}}}}}
}

// process runs everything that is queued.
func (t *Thread) process(tb testing.TB) {
	for t.buffered() > 0 {
		if err := t.processTasks(); err != nil {
			tb.Fatal(err)
		}
	}
}

func TestRecordsAreRoutedOnceAndInOrder(t *testing.T) {
	producer := &fakeProducer{}
	th, o := copying(t, producer)
	for _, batch := range []kgo.Fetches{
		batchAt("in", 3, 0, 5),
		batchAt("in", 3, 2, 5), // 2 to 4 were seen: a fetch from before a reset may come again
		batchAt("in", 9, 0, 5), // not ours
	} {
		if err := th.accept(batch); err != nil {
			t.Fatal(err)
		}
	}
	th.process(t)
	if len(producer.pending) != 7 {
		t.Errorf("%d records were produced, want 7", len(producer.pending))
	}
	if in, stale := th.stats.RecordsIn.Load(), th.stats.Stale.Load(); in != 7 || stale != 5 {
		t.Errorf("%d records in and %d stale, want 7 and 5", in, stale)
	}
	if got := o.task.Positions(); len(got) != 1 || got[0].Next != 7 {
		t.Errorf("positions %v, want 7", got)
	}
}

// Transaction markers take offsets, and a commit must not stay in front of them.
func TestPositionsPassTransactionMarkers(t *testing.T) {
	th, o := copying(t, &fakeProducer{})
	batch := batchAt("in", 3, 0, 3)
	batch[0].Topics[0].Partitions[0].Records[2].Attrs = kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Transactional: true, Control: true})
	if err := th.accept(batch); err != nil {
		t.Fatal(err)
	}
	th.process(t)
	if got := o.task.Positions(); len(got) != 1 || got[0].Next != 3 {
		t.Errorf("positions %v, want 3", got)
	}
	if o.stats.Processed != 2 {
		t.Errorf("%d records were processed, want 2", o.stats.Processed)
	}
}

// From the fetched record to the client's Produce nothing is allocated per record.
func TestRecordPathAllocatesNothing(t *testing.T) {
	const records = 1000
	th, _ := copying(t, &fakeProducer{automatic: true})
	next := int64(0)
	batch := batchAt("in", 3, 0, records)
	allocs := testing.AllocsPerRun(50, func() {
		for _, r := range batch[0].Topics[0].Partitions[0].Records {
			r.Offset = next
			next++
		}
		if err := th.accept(batch); err != nil {
			t.Fatal(err)
		}
		th.process(t)
	})
	if allocs > 0 {
		t.Errorf("%.0f allocations for %d records", allocs, records)
	}
}

func BenchmarkRecordPath(b *testing.B) {
	const records = 1000
	th, _ := copying(b, &fakeProducer{automatic: true})
	batch := batchAt("in", 3, 0, records)
	next := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		for _, r := range batch[0].Topics[0].Partitions[0].Records {
			r.Offset = next
			next++
		}
		if err := th.accept(batch); err != nil {
			b.Fatal(err)
		}
		th.process(b)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
}
