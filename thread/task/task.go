package task

import (
	"fmt"
	"slices"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/statestore"
)

// State is what a task needs of its state; *[statestore.State] has it.
type State interface {
	KeyValue(name string) (statestore.KeyValueStore, error)
	Window(name string) (statestore.WindowStore, error)
	Dirty() bool
	UncommittedBytes() int64
	Changelog(emit func(store string, key, value []byte, ts int64) error) error
	Commit(offsets []statestore.Offset) error
	Abort()
}

var _ State = (*statestore.State)(nil)

// Config says which task to build.
type Config struct {
	ID  taskid.ID
	Sub *topology.Subtopology
	// State is the task's state; it may be nil, and is ignored, when the sub-topology has no stores.
	State State
	// OnDecodeError is asked about input records that cannot be decoded or have a negative timestamp; nil fails.
	OnDecodeError Handler
	// OnProcessError is asked about errors and panics of user code and about results that cannot be encoded; nil fails.
	OnProcessError Handler
	// Stats receives the counters; nil means that the task makes its own.
	Stats *Stats
}

// Task is one task. It belongs to one goroutine.
type Task struct {
	id                  taskid.ID
	sub                 *topology.Subtopology
	state               State // nil without stores
	onDecode, onProcess Handler
	stats               *Stats
	inputs              []input
	outbox              *Outbox
	cursor              topology.Cursor
	clocks              clocks
	times               progress // what the next commit records
	saved               progress // what the last one recorded
	current             *input   // of the record being processed
	emitted             int64    // stats.Emitted at the last commit
	stores              map[string]int32
}

// input is one source topic.
type input struct {
	queue
	topic   string
	entries []topology.Entry
	next    int64 // offset after the last record taken, or where the last commit was; -1 unknown
	seen    int64 // up to here the owner saw that there is nothing but what it enqueued; -1 unknown
	epoch   int32 // leader epoch of the last record taken
	base    int64 // next at the last commit
	moved   bool
}

// New builds the operators of a task.
func New(cfg Config) (*Task, error) {
	t := &Task{
		id: cfg.ID, sub: cfg.Sub, onDecode: cfg.OnDecodeError, onProcess: cfg.OnProcessError, stats: cfg.Stats,
		outbox: new(Outbox), stores: make(map[string]int32, len(cfg.Sub.Stores)), times: unknownTimes, saved: unknownTimes,
	}
	if t.stats == nil {
		t.stats = new(Stats)
	}
	for i, s := range cfg.Sub.Stores {
		t.stores[s.Name] = int32(len(cfg.Sub.Sinks) + i)
	}
	if len(cfg.Sub.Stores) > 0 {
		if cfg.State == nil {
			return nil, fmt.Errorf("task %v: the sub-topology has stores, but no state was given", cfg.ID)
		}
		t.state = cfg.State
	}
	inputs, err := cfg.Sub.Instantiate((*runtime)(t))
	if err != nil {
		return nil, fmt.Errorf("task %v: %w", cfg.ID, err)
	}
	for _, in := range inputs {
		t.inputs = append(t.inputs, input{topic: in.Topic, entries: in.Entries, next: -1, seen: -1, epoch: -1, base: -1})
	}
	return t, nil
}

// ID returns the task's id.
func (t *Task) ID() taskid.ID { return t.id }

// Stats returns the task's counters. They change while it processes.
func (t *Task) Stats() *Stats { return t.stats }

// StreamTime is the greatest timestamp of a record taken, -1 before the first.
func (t *Task) StreamTime() int64 { return t.times.stream }

// Input returns the index of a source topic by its full name.
func (t *Task) Input(topic string) (int, bool) {
	i := slices.IndexFunc(t.inputs, func(in input) bool { return in.topic == topic })
	return i, i >= 0
}

// Enqueue appends fetched records of a topic. See [Task.EnqueueAt].
func (t *Task) Enqueue(topic string, recs []topology.Record) error {
	in, ok := t.Input(topic)
	if !ok {
		return fmt.Errorf("task %v does not read topic %q", t.id, topic)
	}
	t.EnqueueAt(in, recs)
	return nil
}

// EnqueueAt appends fetched records of an input, in the order of their offsets. The structs are copied; the bytes and
// headers they refer to must stay valid until the records are processed or dropped by [Task.Abort].
func (t *Task) EnqueueAt(in int, recs []topology.Record) {
	if len(recs) > 0 {
		t.inputs[in].push(recs)
	}
}

// SeenAt tells that the input has no record before next that was not enqueued: markers of transactions and compacted
// records take offsets too, and a commit should not stay in front of them.
func (t *Task) SeenAt(in int, next int64) {
	i := &t.inputs[in]
	i.seen = next
	if i.len() == 0 && next > i.next {
		i.moved = true
	}
}

// Buffered is the number of records in an input's queue.
func (t *Task) Buffered(in int) int { return t.inputs[in].len() }

// BufferedTotal is the number of records in all queues.
func (t *Task) BufferedTotal() int {
	sum := 0
	for i := range t.inputs {
		sum += t.inputs[i].len()
	}
	return sum
}

// Outbox returns what operators produced since the last swap. It must not be kept.
func (t *Task) Outbox() *Outbox { return t.outbox }

// SwapOutbox takes the outbox and leaves an empty one.
func (t *Task) SwapOutbox(empty *Outbox) *Outbox {
	full := t.outbox
	t.outbox = empty
	return full
}

// UncommittedBytes is what the state holds since the last commit.
func (t *Task) UncommittedBytes() int64 {
	if t.state == nil {
		return 0
	}
	return t.state.UncommittedBytes()
}
