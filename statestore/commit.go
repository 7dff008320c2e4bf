package statestore

import (
	"errors"
	"fmt"
)

// Changelog calls emit once for every key written since the last commit, with its last value: stores in the order of
// their specs, keys in the order of their first write, deletions as a nil value. Keys and values are Kafka Streams'
// changelog bytes. It may be called again before the commit; it changes nothing. The slices are valid until the next
// Commit, Abort, or write of the key. Stores without a changelog are left out. The first error of emit ends it.
func (s *State) Changelog(emit func(store string, key, value []byte, ts int64) error) error {
	arena := s.arena[:0]
	for _, st := range s.ordered {
		t := st.base()
		if !t.spec.Logged {
			continue
		}
		for _, i := range t.dirty {
			e := s.overlay.at(i)
			var key, value []byte
			key, arena = st.changelogKey(e, arena)
			if !e.is(flagAbsent) {
				value = e.value()
			}
			if err := emit(t.spec.Name, key, value, e.timestamp()); err != nil {
				return err
			}
		}
	}
	s.arena = arena
	return nil
}

// Commit writes the overlay and the offsets of the stores that moved to the engine, in one batch, and keeps the entries
// as read cache. Without anything to write it does nothing.
//
// After a *[StoreError] that is Stalled nothing has been written and everything is as before: it may be tried again, with
// further writes as well. After any other error of the engine the state takes no more writes: its owner closes it and
// opens the engine again, which holds either all of the batch or nothing.
func (s *State) Commit(offsets []Offset) error {
	if s.failed != nil {
		return s.failed
	}
	if len(offsets) == 0 && !s.Dirty() {
		return nil
	}
	s.batch.Reset()
	for _, st := range s.ordered {
		st.base().stageRows(&s.batch)
		st.stage(&s.batch)
	}
	now := s.now()
	for _, off := range offsets {
		if err := s.stageOffset(off, now.UnixMilli()); err != nil {
			return err
		}
	}
	stageSeq(&s.batch, s.seq+1)
	if err := s.apply("commit"); err != nil {
		return err
	}
	s.seq++
	s.stats.Commits++
	s.settle(offsets, now.UnixMilli())
	s.engine.FlushIfDue(now)
	return nil
}

// apply applies the batch. An outcome that is not known ends the use of this state.
func (s *State) apply(what string) error {
	err := s.engine.Apply(&s.batch)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", what, err)
	if stalled, ok := errors.AsType[*StoreError](err); !ok || !stalled.Stalled {
		s.failed = err
	}
	return err
}

// stageRows adds the dirty entries to the batch.
func (t *table) stageRows(b *Batch) {
	for _, i := range t.dirty {
		if e := t.state.overlay.at(i); e.is(flagAbsent) {
			b.Delete(e.engine())
		} else {
			b.Set(e.engine(), e.row())
		}
	}
}

func (s *State) stageOffset(off Offset, nowMilli int64) error {
	st, ok := s.stores[off.Store]
	if !ok {
		return fmt.Errorf("commit: offset for store %q, which this task does not have", off.Store)
	}
	stageOffset(&s.batch, st.base().id, off.Next, nowMilli)
	return nil
}

// settle turns dirty entries clean after their batch was applied.
func (s *State) settle(offsets []Offset, nowMilli int64) {
	cleaned := 0
	for _, st := range s.ordered {
		t := st.base()
		for _, i := range t.dirty {
			s.overlay.markClean(s.overlay.at(i))
		}
		cleaned += len(t.dirty)
		t.forgetDirty()
		st.committed()
	}
	for _, off := range offsets {
		s.stores[off.Store].base().moved(off.Next, nowMilli)
	}
	s.batch.Reset()
	s.dropArena()
	s.overlay.evict(2 * cleaned) // what turned clean beyond the budget goes now, not with later insertions
}

func (t *table) moved(next, nowMilli int64) {
	t.offset.Next, t.hasOffset, t.appliedMilli = next, true, nowMilli
}

// keptDirty bounds the dirty list that is kept for the next interval, in entries.
const keptDirty = 1 << 16

func (t *table) forgetDirty() {
	t.dirty = t.dirty[:0]
	if cap(t.dirty) > keptDirty {
		t.dirty = nil
	}
	t.order.reset()
}

func (s *State) dropArena() {
	s.arena = s.arena[:0]
	if cap(s.arena) > keptBatchBytes {
		s.arena = nil
	}
}

// Abort drops everything written since the last commit. The engine is untouched; observed times go back too.
func (s *State) Abort() {
	for _, st := range s.ordered {
		t := st.base()
		for _, i := range t.dirty {
			s.overlay.remove(i)
		}
		t.forgetDirty()
		st.aborted()
	}
	s.overlay.last = noEntry
	s.dropArena()
}
