package streams

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/millrace-io/millrace/internal/murmur2"
	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/streams/serde"
)

// View reads the local part of a table: the tasks that run on this process. It sees committed state only, as of the moment of
// each call, while the tasks go on. It may be used from any goroutine, and kept: it follows the tasks as they come and go.
type View[K, V any] struct {
	local localStore
	key   serde.Serde[K]
	value serde.Serde[V]
}

// WindowView is a [View] of a windowed table.
type WindowView[K, V any] struct {
	local localStore
	key   serde.Serde[K]
	value serde.Serde[V]
	size  time.Duration
}

// Windowed is a row of a windowed table: the value of a key in the window from Start (included) to End (excluded).
type Windowed[V any] struct {
	Start, End time.Time
	Value      V
}

// View returns a view of a table. It fails with [ErrNotRunning] before Run and after the stop, and with [ErrUnknownStore] when
// the table is not kept in a store of this application's topology.
func (a *App) View[K, V any](ref TableRef[K, V]) (*View[K, V], error) {
	local, err := a.localStore(ref.store, statestore.KeyValue)
	if err != nil {
		return nil, err
	}
	return &View[K, V]{local: local, key: ref.key, value: ref.value}, nil
}

// ViewWindows returns a view of a windowed table. The errors are those of [App.View].
func (a *App) ViewWindows[K, V any](ref WindowRef[K, V]) (*WindowView[K, V], error) {
	local, err := a.localStore(ref.store, statestore.Window)
	if err != nil {
		return nil, err
	}
	return &WindowView[K, V]{local: local, key: ref.key, value: ref.value, size: ref.size}, nil
}

// Get returns the value of a key. It fails with [ErrNotHere] when the key's task is not on this process, so that a missing row
// is never mistaken for one that is elsewhere.
func (v *View[K, V]) Get(key K) (value V, ok bool, err error) {
	encoded, err := v.key.Append(nil, key)
	if err != nil {
		return value, false, fmt.Errorf("store %q: encoding the key: %w", v.local.name, err)
	}
	err = v.local.lookUp(encoded, func(view *statestore.View) (bool, error) {
		raw, _, found, err := view.GetKV(v.local.name, encoded)
		if err != nil || !found {
			return false, err
		}
		ok = true
		value, err = v.value.Decode(raw)
		return true, err
	})
	return value, ok, err
}

// All iterates over the local rows, task by task, in the order of the keys' bytes within each. The second result tells, after the
// iteration, why it ended early, nil when it did not.
func (v *View[K, V]) All() (iter.Seq2[K, V], func() error) {
	var failed error
	rows := func(yield func(K, V) bool) {
		failed = v.local.each(func(view *statestore.View) (bool, error) {
			more, broken := true, error(nil)
			err := view.RangeKV(v.local.name, nil, nil, func(rawKey, rawValue []byte, _ int64) bool {
				key, value, err := decodeRow(v.key, v.value, rawKey, rawValue)
				if err != nil {
					broken = fmt.Errorf("store %q: %w", v.local.name, err)
					return false
				}
				more = yield(key, value)
				return more
			})
			return more, errors.Join(broken, err)
		})
	}
	return rows, func() error { return failed }
}

// Get returns the value of a key in the window that begins at start.
func (v *WindowView[K, V]) Get(key K, start time.Time) (value V, ok bool, err error) {
	rows, err := v.Fetch(key, start, start)
	if err != nil || len(rows) == 0 {
		return value, false, err
	}
	return rows[0].Value, true, nil
}

// Fetch returns the live windows of a key that begin at from or later and not after to, in order. It fails with [ErrNotHere] as
// [View.Get] does.
func (v *WindowView[K, V]) Fetch(key K, from, to time.Time) (rows []Windowed[V], err error) {
	encoded, err := v.key.Append(nil, key)
	if err != nil {
		return nil, fmt.Errorf("store %q: encoding the key: %w", v.local.name, err)
	}
	err = v.local.lookUp(encoded, func(view *statestore.View) (bool, error) {
		var broken error
		err := view.FetchWindow(v.local.name, encoded, from.UnixMilli(), to.UnixMilli(), func(start int64, raw []byte, _ int64) bool {
			value, err := v.value.Decode(raw)
			if err != nil {
				broken = fmt.Errorf("store %q: decoding a value: %w", v.local.name, err)
				return false
			}
			begin := time.UnixMilli(start)
			rows = append(rows, Windowed[V]{Start: begin, End: begin.Add(v.size), Value: value})
			return true
		})
		return len(rows) > 0, errors.Join(broken, err)
	})
	return rows, err
}

func decodeRow[K, V any](ks serde.Serde[K], vs serde.Serde[V], rawKey, rawValue []byte) (key K, value V, err error) {
	if key, err = ks.Decode(slices.Clone(rawKey)); err != nil {
		return key, value, fmt.Errorf("decoding a key: %w", err)
	}
	if value, err = vs.Decode(slices.Clone(rawValue)); err != nil {
		return key, value, fmt.Errorf("decoding a value: %w", err)
	}
	return key, value, nil
}

// localStore is a store of the tasks that run here.
type localStore struct {
	name  string
	sub   string
	tasks int32 // of the whole application
	// states returns the open states that have the store, by partition.
	states func() (map[int32]*statestore.State, error)
}

func (a *App) localStore(name string, kind statestore.Kind) (localStore, error) {
	p := a.process.Load()
	if p == nil || !a.queryable() {
		return localStore{}, fmt.Errorf("store %q: %w: it is %v", name, ErrNotRunning, a.State())
	}
	for _, sub := range a.plan.Subtopologies {
		for _, s := range sub.Stores {
			if s.Name == name && s.Kind == kind {
				return localStore{
					name: name, sub: sub.ID, tasks: p.tasksOf(sub.ID),
					states: func() (map[int32]*statestore.State, error) { return a.localStates(name, sub.ID) },
				}, nil
			}
		}
	}
	return localStore{}, fmt.Errorf("store %q: %w", name, ErrUnknownStore)
}

func (a *App) queryable() bool {
	s := a.State()
	return s == Running || s == Rebalancing
}

// localStates returns the open states of a sub-topology's tasks on this process, by partition.
func (a *App) localStates(store, sub string) (map[int32]*statestore.State, error) {
	if !a.queryable() {
		return nil, fmt.Errorf("store %q: %w: it is %v", store, ErrNotRunning, a.State())
	}
	found := map[int32]*statestore.State{}
	for _, t := range a.process.Load().threads() {
		for id, state := range t.States() {
			if id.Subtopology == sub {
				found[id.Partition] = state
			}
		}
	}
	return found, nil
}

// lookUp asks the task that Kafka's default partitioner gives the key to, and then the other local ones, because a source topic
// may be partitioned otherwise, until read says that it has the answer.
func (l *localStore) lookUp(key []byte, read func(*statestore.View) (bool, error)) error {
	states, err := l.states()
	if err != nil {
		return err
	}
	home := murmur2.Partition(key, l.tasks)
	for _, partition := range append([]int32{home}, partitionsBut(states, home)...) {
		answered, err := l.ask(states[partition], read)
		if err != nil || answered {
			return err
		}
	}
	if states[home] == nil {
		return fmt.Errorf("store %q: %w: task %v", l.name, ErrNotHere, taskid.ID{Subtopology: l.sub, Partition: home})
	}
	return nil
}

func partitionsBut(states map[int32]*statestore.State, home int32) []int32 {
	var others []int32
	for partition := range states {
		if partition != home {
			others = append(others, partition)
		}
	}
	slices.Sort(others)
	return others
}

// each asks every local task in the order of partitions, until read returns false.
func (l *localStore) each(read func(*statestore.View) (bool, error)) error {
	states, err := l.states()
	if err != nil {
		return err
	}
	if len(states) == 0 {
		return fmt.Errorf("store %q: %w", l.name, ErrNotHere)
	}
	for _, partition := range partitionsBut(states, -1) {
		if more, err := l.ask(states[partition], read); err != nil || !more {
			return err
		}
	}
	return nil
}

// ask reads one task's committed state.
func (l *localStore) ask(state *statestore.State, read func(*statestore.View) (bool, error)) (bool, error) {
	if state == nil {
		return false, nil
	}
	view, err := state.Reader()
	if err == nil {
		defer view.Close()
		var answered bool
		if answered, err = read(view); err == nil {
			return answered, nil
		}
	}
	if errors.Is(err, statestore.ErrClosed) {
		return false, fmt.Errorf("store %q: %w: a task moved just now", l.name, ErrNotHere)
	}
	return false, err
}

// tasksOf is the number of tasks of a sub-topology.
func (p *process) tasksOf(sub string) int32 {
	var n int32
	for _, id := range p.layout.Load().Tasks() {
		if id.Subtopology == sub {
			n++
		}
	}
	return n
}
