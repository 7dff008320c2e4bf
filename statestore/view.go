package statestore

import (
	"encoding/binary"
	"fmt"
)

// View is a committed view of a task's stores for queries: what the engine held when it was taken, whatever the task does
// meanwhile. It belongs to one goroutine. Take one for each query and close it soon: it pins disk space.
type View struct {
	snapshot Snapshot
	dir      string
	stores   map[string]viewStore // never changes once the state is open
}

type viewStore struct {
	spec     Spec
	id       uint16
	interval int64
}

// Reader takes a view. Any goroutine may call it at any time; after Close it fails with [ErrClosed].
func (s *State) Reader() (*View, error) {
	snapshot, err := s.engine.Snapshot()
	if err != nil {
		return nil, err
	}
	return &View{snapshot: snapshot, dir: s.dir, stores: s.views}, nil
}

// Close releases the view.
func (v *View) Close() error { return v.snapshot.Close() }

// Specs returns the stores of the view by name. The map must not be changed.
func (v *View) Specs() map[string]Spec {
	specs := make(map[string]Spec, len(v.stores))
	for name, st := range v.stores {
		specs[name] = st.spec
	}
	return specs
}

// GetKV returns a copy of the value of key in a key-value store.
func (v *View) GetKV(store string, key []byte) (value []byte, ts int64, ok bool, err error) {
	st, err := v.store(store, KeyValue)
	if err != nil {
		return nil, 0, false, err
	}
	return v.get(st, append(appendStorePrefix(nil, st.id), key...))
}

// RangeKV calls fn for the entries of a key-value store as [KeyValueStore.Range] does. The slices are valid until fn
// returns.
func (v *View) RangeKV(store string, from, to []byte, fn func(key, value []byte, ts int64) bool) error {
	st, err := v.store(store, KeyValue)
	if err != nil {
		return err
	}
	lo, hi := keyValueBounds(nil, nil, st.id, from, to)
	return v.scan(st, lo, hi, func(key, value []byte, ts int64) bool { return fn(key[storePrefixLen:], value, ts) })
}

// GetWindow returns a copy of the value of key in one window. Expired windows are absent.
func (v *View) GetWindow(store string, key []byte, start int64) (value []byte, ts int64, ok bool, err error) {
	st, clock, err := v.window(store)
	if err != nil || start < 0 || clock.expired(start) {
		return nil, 0, false, err
	}
	return v.get(st, appendWindowKey(appendStorePrefix(nil, st.id), clock.segment(start), key, start))
}

// FetchWindow calls fn for the live windows of key as [WindowStore.Fetch] does.
func (v *View) FetchWindow(store string, key []byte, fromStart, toStart int64, fn func(start int64, value []byte, ts int64) bool) error {
	st, clock, err := v.window(store)
	if err != nil {
		return err
	}
	more := true
	return clock.fetch(fromStart, toStart, func(segment uint64, from, to int64) (bool, error) {
		lo, hi := windowBounds(nil, nil, st.id, segment, key, from, to)
		err := v.scan(st, lo, hi, func(key, value []byte, ts int64) bool {
			more = fn(windowStart(key), value, ts)
			return more
		})
		return more, err
	})
}

func (v *View) get(st viewStore, engineKey []byte) (value []byte, ts int64, ok bool, err error) {
	row, ok, err := v.snapshot.Get(nil, engineKey)
	if ok && err == nil {
		value, ts, err = splitRow(v.dir, row)
	}
	if err != nil {
		return nil, 0, false, fmt.Errorf("store %q: get: %w", st.spec.Name, err)
	}
	return value, ts, ok, nil
}

func (v *View) scan(st viewStore, lo, hi []byte, fn func(engineKey, value []byte, ts int64) bool) error {
	var damaged error
	err := v.snapshot.Scan(lo, hi, func(key, row []byte) bool {
		value, ts, err := splitRow(v.dir, row)
		if err != nil {
			damaged = err
			return false
		}
		return fn(key, value, ts)
	})
	if err == nil {
		err = damaged
	}
	if err != nil {
		return fmt.Errorf("store %q: scan: %w", st.spec.Name, err)
	}
	return nil
}

func (v *View) store(name string, kind Kind) (viewStore, error) {
	st, ok := v.stores[name]
	switch {
	case !ok:
		return viewStore{}, fmt.Errorf("store %q is not on this task", name)
	case st.spec.Kind != kind:
		return viewStore{}, fmt.Errorf("store %q is a %v store, not a %v store", name, st.spec.Kind, kind)
	}
	return st, nil
}

// window returns the store and its clock as of the snapshot.
func (v *View) window(name string) (viewStore, *segmentClock, error) {
	st, err := v.store(name, Window)
	if err != nil {
		return viewStore{}, nil, err
	}
	clock := &segmentClock{retention: st.spec.Retention, interval: st.interval, observed: -1}
	value, ok, err := v.snapshot.Get(nil, metaStoreKey(metaObserved, st.id))
	if err != nil {
		return viewStore{}, nil, fmt.Errorf("store %q: get: %w", name, err)
	}
	if ok && len(value) == 8 {
		clock.observed = int64(binary.BigEndian.Uint64(value))
	}
	return st, clock, nil
}
