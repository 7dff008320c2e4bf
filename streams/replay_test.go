package streams_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/memstore"
	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/window"
	"github.com/millrace-io/millrace/thread/task"
)

// runner is the owner of one task as a stream thread is, with everything that a stream thread keeps in Kafka: the committed
// offset and the committed output.
type runner struct {
	plan      *topology.Plan
	disk      *memstore.Disk
	state     *statestore.State
	task      *task.Task
	input     []topology.Record
	committed task.Committed
	fetched   int      // position in the input
	open      []string // output since the last commit
	output    []string // committed output
}

func newRunner(t *rapid.T, input []topology.Record) *runner {
	b := streams.NewBuilder()
	in := b.Stream("in", serde.String, serde.String)
	in.GroupByKey().WindowedBy(window.Hopping(10*time.Millisecond, 5*time.Millisecond).Grace(3*time.Millisecond)).Count("windows").
		ToStream(func(k window.Key[string]) string { return k.String() }).To("windowed", nil, nil)
	// The filter makes the second operator's stream time differ from the first one's.
	in.Filter(func(_, v string) bool { return v == "even" }).GroupByKey().
		WindowedBy(window.Tumbling(7*time.Millisecond).Grace(0)).Count("even-windows").
		ToStream(func(k window.Key[string]) string { return k.String() }).To("even", nil, nil)
	in.GroupByKey().ReduceOrDelete("last", func(a, v string) (string, bool) { return a + v, len(a) < 20 }).ToStream().To("reduced", nil, nil)
	plan, err := b.Build("app")
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{plan: plan, disk: new(memstore.Disk), input: input, committed: task.Committed{Next: -1}}
	r.start(t)
	return r
}

// start opens the task on what is on disk and committed.
func (r *runner) start(t *rapid.T) {
	engine, err := r.disk.Open()
	if err != nil {
		t.Fatal(err)
	}
	sub := &r.plan.Subtopologies[0]
	var specs []statestore.Spec
	for _, s := range sub.Stores {
		specs = append(specs, s.Spec)
	}
	if r.state, err = statestore.OpenState(engine, specs, statestore.StateOptions{}); err != nil {
		t.Fatal(err)
	}
	if r.task, err = task.New(task.Config{ID: taskid.ID{Subtopology: sub.ID}, Sub: sub, State: r.state}); err != nil {
		t.Fatal(err)
	}
	r.task.Resume(map[string]task.Committed{"in": r.committed})
	r.seek()
}

// seek goes back to the committed offset and forgets the output since.
func (r *runner) seek() {
	r.fetched, r.open = int(max(0, r.task.Base(0))), nil
}

func (r *runner) process(t *rapid.T, fetch, limit int) {
	upTo := min(len(r.input), r.fetched+fetch)
	r.task.EnqueueAt(0, r.input[r.fetched:upTo])
	r.fetched = upTo
	if _, err := r.task.Process(limit); err != nil {
		t.Fatal(err)
	}
}

func (r *runner) commit(t *rapid.T) {
	out := r.task.SwapOutbox(new(task.Outbox))
	for _, rec := range out.Records {
		r.open = append(r.open, fmt.Sprintf("%d %s=%s@%d", rec.Topic, rec.Key, rec.Value, rec.Timestamp))
	}
	if err := r.task.FlushChangelog(); err != nil {
		t.Fatal(err)
	}
	if positions := r.task.Positions(); len(positions) > 0 {
		r.committed = task.Committed{Next: positions[0].Next, LeaderEpoch: positions[0].LeaderEpoch, Metadata: positions[0].Metadata}
	}
	r.output, r.open = append(r.output, r.open...), nil
	if err := r.task.Committed(nil); err != nil {
		t.Fatal(err)
	}
	r.task.SwapOutbox(new(task.Outbox))
}

// crash loses the task without a commit; the state is what had been applied to it.
func (r *runner) restart(t *rapid.T) {
	if err := r.state.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.start(t)
}

// TestAbortsAndRestartsChangeNothing is promise P2 for a task alone: whatever is aborted, lost and repeated, the committed
// output is that of one run in one go, late records and deletions included.
func TestAbortsAndRestartsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		input := make([]topology.Record, rapid.IntRange(1, 60).Draw(t, "records"))
		for i := range input {
			input[i] = topology.Record{
				Key:       []byte(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")),
				Value:     []byte(rapid.SampledFrom([]string{"odd", "even"}).Draw(t, "value")),
				Timestamp: rapid.Int64Range(0, 60).Draw(t, "ts"),
				Offset:    int64(i),
			}
		}
		once := newRunner(t, input)
		once.process(t, len(input), len(input))
		once.commit(t)

		again := newRunner(t, input)
		for range rapid.IntRange(0, 25).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"process", "process", "commit", "abort", "restart"}).Draw(t, "step") {
			case "process":
				again.process(t, rapid.IntRange(0, 20).Draw(t, "fetch"), rapid.IntRange(0, 20).Draw(t, "limit"))
			case "commit":
				again.commit(t)
			case "abort":
				again.task.Abort()
				again.seek()
			case "restart":
				again.restart(t)
			}
		}
		again.process(t, len(input), 2*len(input))
		again.commit(t)

		// Topics are compared one by one: how outputs interleave between them is the outbox' business.
		for topic := range 3 {
			prefix := fmt.Appendf(nil, "%d ", topic)
			of := func(all []string) []string {
				return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !bytes.HasPrefix([]byte(s), prefix) })
			}
			if want, got := of(once.output), of(again.output); !slices.Equal(want, got) {
				t.Fatalf("topic %d:\n got %q\nwant %q", topic, got, want)
			}
		}
	})
}
