package streams_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/memstore"
	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/window"
	"github.com/millrace-io/millrace/thread/task"
)

// pipeline is one task with a batch of raw records, run from queue to outbox.
type pipeline struct {
	task  *task.Task
	batch []topology.Record
	out   *task.Outbox
}

const batchSize = 512

// newPipeline builds the only sub-topology and feeds it batchSize records with 64 keys. The first turn creates the rows
// and grows the buffers.
func newPipeline(t testing.TB, build func(*streams.Builder), value func(i int) []byte) *pipeline {
	t.Helper()
	b := streams.NewBuilder()
	build(b)
	plan, err := b.Build("app")
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Subtopologies) != 1 {
		t.Fatalf("%d sub-topologies, want one", len(plan.Subtopologies))
	}
	sub := &plan.Subtopologies[0]
	cfg := task.Config{ID: taskid.ID{Subtopology: sub.ID}, Sub: sub}
	if len(sub.Stores) > 0 {
		cfg.State = openState(t, sub)
	}
	p := &pipeline{out: new(task.Outbox)}
	if p.task, err = task.New(cfg); err != nil {
		t.Fatal(err)
	}
	for i := range batchSize {
		p.batch = append(p.batch, topology.Record{
			Key: fmt.Appendf(nil, "key-%02d", i%64), Value: value(i), Offset: int64(i), Timestamp: int64(1000 + i),
		})
	}
	p.turn(t)
	p.turn(t)
	return p
}

func openState(t testing.TB, sub *topology.Subtopology) *statestore.State {
	t.Helper()
	var specs []statestore.Spec
	for _, s := range sub.Stores {
		specs = append(specs, s.Spec)
	}
	state, err := statestore.OpenState(memstore.New(), specs, statestore.StateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := state.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return state
}

func (p *pipeline) turn(t testing.TB) {
	p.task.EnqueueAt(0, p.batch)
	if n, err := p.task.Process(batchSize); n != batchSize || err != nil {
		t.Fatalf("Process = %d, %v", n, err)
	}
	p.out = p.task.SwapOutbox(p.out)
	p.out.Reset()
}

func payload(i int) []byte { return fmt.Appendf(nil, "value-%03d-%032d", i, i) }

func number(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }

// pipelines are the shapes whose record path must not allocate. Strings allocate what decoding them needs, and are
// therefore only measured.
var pipelines = []struct {
	name   string
	build  func(*streams.Builder)
	value  func(int) []byte
	allocs bool
}{
	{"pass", func(b *streams.Builder) {
		b.Stream("in", serde.Bytes, serde.Bytes).To("out", nil, nil)
	}, payload, false},
	{"filter, map and count", func(b *streams.Builder) {
		b.Stream("in", serde.Bytes, serde.Bytes).
			Filter(func(_, v []byte) bool { return len(v) > 0 }).
			MapValues(func(v []byte) []byte { return v[:5] }).
			GroupByKey().Count("counts").
			ToStream().To("out", nil, nil)
	}, payload, false},
	{"flat map", func(b *streams.Builder) {
		b.Stream("in", serde.Bytes, serde.Bytes).
			FlatMapValuesFunc(func(v []byte, emit func([]byte)) { emit(v[:5]); emit(v[5:]) }).
			FlatMap(func(k, v []byte, emit func([]byte, []byte)) { emit(v, k) }).
			To("out", nil, nil)
	}, payload, false},
	{"reduce", func(b *streams.Builder) {
		b.Stream("in", serde.Bytes, serde.Int64).
			GroupByKey().Reduce("sums", func(sum, v int64) int64 { return sum + v }).
			Filter(func(_ []byte, sum int64) bool { return sum%2 == 0 }).
			ToStream().To("out", nil, nil)
	}, number, false},
	{"windowed count", func(b *streams.Builder) {
		b.Stream("in", serde.Bytes, serde.Bytes).
			GroupByKey().WindowedBy(window.Tumbling(time.Second).Grace(time.Hour)).Count("counts").
			ToStream(func(k window.Key[[]byte]) window.Key[[]byte] { return k }).To("out", nil, nil)
	}, payload, false},
	{"table", func(b *streams.Builder) {
		b.Table("in", serde.Bytes, serde.Bytes, "rows").
			MapValues(func(v []byte) []byte { return v[:5] }).
			ToStream().To("out", nil, nil)
	}, payload, false},
	{"count of strings", func(b *streams.Builder) {
		b.Stream("in", serde.String, serde.String).GroupByKey().Count("counts").ToStream().To("out", nil, nil)
	}, payload, true},
}

// TestRecordPathDoesNotAllocate holds the whole path, from the raw record through decoding, operators and stores to the
// encoded record in the outbox.
func TestRecordPathDoesNotAllocate(t *testing.T) {
	for _, test := range pipelines {
		if test.allocs {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			p := newPipeline(t, test.build, test.value)
			if allocs := testing.AllocsPerRun(20, func() { p.turn(t) }); allocs != 0 {
				t.Errorf("%v allocations for %d records, want 0", allocs, batchSize)
			}
		})
	}
}

func BenchmarkRecordPath(b *testing.B) {
	for _, bench := range pipelines {
		b.Run(bench.name, func(b *testing.B) {
			p := newPipeline(b, bench.build, bench.value)
			b.ReportAllocs()
			for n := 0; n < b.N; n += batchSize {
				p.turn(b)
			}
		})
	}
}
