package task_test

import (
	"context"
	"testing"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/memstore"
	"github.com/millrace-io/millrace/thread/task"
)

// script is a topology of two topics, "a" and "b", whose records all go through one operator written in Go.
type script struct {
	process func(rt *kit, r *topology.Record) error
	store   bool
}

// kit is what the operator of a script works with.
type kit struct {
	topology.Runtime
	sink   topology.Sink
	kv     statestore.KeyValueStore
	clock  *int64
	worker topology.NodeID
}

// emit writes a record to the topic "out".
func (k *kit) emit(r *topology.Record) {
	buf := append(k.sink.Buffer(), r.Key...)
	cut := len(buf)
	buf = append(buf, r.Value...)
	k.sink.Emit(topology.Emission{
		Buf: buf, Cut: cut, NoKey: r.Key == nil, Tombstone: r.Value == nil, Timestamp: r.Timestamp, Headers: r.Headers,
	})
}

type entry func(r *topology.Record) error

func (e entry) Process(r *topology.Record) error { return e(r) }

// plan builds the script's topology. The worker is built last, so sources reach it through the kit.
func (s script) plan(t testing.TB) *topology.Plan {
	t.Helper()
	var g topology.Graph
	k := &kit{}
	var sources []topology.NodeID
	for _, topic := range []string{"a", "b"} {
		sources = append(sources, g.Add(topology.Node{
			Kind: topology.Source, Name: "source-" + topic, Topics: []string{topic},
			Build: func(topology.Runtime, []any) (topology.Built, error) {
				return topology.Built{Entry: entry(func(r *topology.Record) error {
					k.Cursor().Node = k.worker
					return s.process(k, r)
				})}, nil
			},
		}))
	}
	worker := topology.Node{Name: "worker", Parents: sources}
	if s.store {
		worker.Stores = []string{"store"}
		g.AddStore(topology.Store{Spec: statestore.Spec{Name: "store", Logged: true}})
	}
	worker.Build = func(rt topology.Runtime, _ []any) (_ topology.Built, err error) {
		k.Runtime, k.clock = rt, rt.Clock("worker")
		if s.store {
			k.kv, err = rt.KeyValue("store")
		}
		return topology.Built{}, err
	}
	k.worker = g.Add(worker)
	g.Add(topology.Node{
		Kind: topology.SinkKind, Name: "sink", Topics: []string{"out"}, Parents: []topology.NodeID{k.worker},
		Build: func(rt topology.Runtime, _ []any) (_ topology.Built, err error) {
			k.sink, err = rt.Sink("out", false)
			return topology.Built{}, err
		},
	})
	plan, err := g.Build("app")
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// start builds the script's only task.
func (s script) start(t testing.TB, adjust func(*task.Config)) *task.Task {
	t.Helper()
	plan := s.plan(t)
	cfg := task.Config{ID: taskid.ID{Subtopology: "a", Partition: 3}, Sub: &plan.Subtopologies[0]}
	if s.store {
		cfg.State = openState(t, cfg.Sub)
	}
	if adjust != nil {
		adjust(&cfg)
	}
	built, err := task.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return built
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

// rec is a record whose value says where it comes from.
func rec(offset, ts int64, value string) topology.Record {
	return topology.Record{Key: []byte("k"), Value: []byte(value), Offset: offset, Timestamp: ts, LeaderEpoch: 7}
}

func enqueue(t testing.TB, tk *task.Task, topic string, recs ...topology.Record) {
	t.Helper()
	if err := tk.Enqueue(topic, recs); err != nil {
		t.Fatal(err)
	}
}

func process(t testing.TB, tk *task.Task, want int) {
	t.Helper()
	if n, err := tk.Process(1000); err != nil || n != want {
		t.Fatalf("Process = %d, %v, want %d records", n, err, want)
	}
}

// values returns the values in the outbox.
func values(tk *task.Task) []string {
	var all []string
	for _, r := range tk.Outbox().Records {
		all = append(all, string(r.Value))
	}
	return all
}
