package statestore

import "fmt"

// This file is how each kind of store takes part in commit, abort and restore.

func (t *table) base() *table { return t }

func (s *keyValueStore) changelogKey(e *entry, arena []byte) ([]byte, []byte) { return e.key(), arena }

func (s *keyValueStore) stage(*Batch) {}

func (s *keyValueStore) committed() {}

func (s *keyValueStore) aborted() {}

func (s *keyValueStore) restoreKey(dst, key []byte) ([]byte, bool, error) {
	return append(dst, key...), true, nil
}

// changelogKey builds key ‖ start ‖ sequence number in the arena. Where the arena has to move, keys handed out before
// keep the old one alive.
func (s *windowStore) changelogKey(e *entry, arena []byte) ([]byte, []byte) {
	begin := len(arena)
	arena, start := appendPlainKey(arena, e.key())
	arena = appendWindowChangelogKey(arena, start)
	return arena[begin:len(arena):len(arena)], arena
}

func (s *windowStore) stage(b *Batch) {
	if s.clock.observed == s.clock.committed {
		return
	}
	stageObserved(b, s.id, s.clock.observed)
	s.clock.expire(b, s.id)
}

func (s *windowStore) committed() {
	s.clock.committed = s.clock.observed
	s.clock.floor = s.clock.segment(s.clock.oldest())
}

func (s *windowStore) aborted() { s.clock.observed = s.clock.committed }

func (s *windowStore) restoreKey(dst, raw []byte) ([]byte, bool, error) {
	key, start, ok := parseWindowChangelogKey(raw)
	if !ok {
		return dst, false, fmt.Errorf("changelog key of %d bytes is not a window key (key, start ≥ 0 in 8 bytes, number in 4): "+
			"the topic holds something else", len(raw))
	}
	s.clock.observed = max(s.clock.observed, start)
	if s.clock.expired(start) {
		return dst, false, nil
	}
	s.forgot(start)
	return appendWindowKey(dst, s.clock.segment(start), key, start), true, nil
}
