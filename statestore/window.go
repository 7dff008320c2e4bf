package statestore

import (
	"encoding/binary"
	"fmt"
)

// windowStore implements [WindowStore] over a table whose row keys are (segment, terminated key, start).
type windowStore struct {
	table
	clock segmentClock
	whole int64  // rows of windows that begin later are all in the overlay, see forgot
	key   []byte // the row key of the call under way
	lo    []byte // buffers for the bounds of fetches
	hi    []byte
}

// segmentClock is the stream time of one window store and what follows from it: which windows live.
type segmentClock struct {
	retention, interval int64
	observed            int64  // greatest window start put, -1 before the first
	committed           int64  // observed as the engine has it
	floor               uint64 // segments below were deleted from the engine
}

// expired says whether the window that begins at start is out of retention.
func (c *segmentClock) expired(start int64) bool { return start <= c.observed-c.retention }

func (c *segmentClock) segment(start int64) uint64 { return uint64(start / c.interval) }

// oldest is the first window start that lives.
func (c *segmentClock) oldest() int64 { return max(0, c.observed-c.retention+1) }

func (s *windowStore) ObservedTime() int64 { return s.clock.observed }

func (s *windowStore) Get(key []byte, start int64) ([]byte, int64, bool, error) {
	if start < 0 || s.clock.expired(start) {
		return nil, 0, false, nil
	}
	s.key = appendWindowKey(s.key[:0], s.clock.segment(start), key, start)
	_, e, err := s.lookup(s.key, start <= s.whole)
	if err != nil || e.is(flagAbsent) {
		return nil, 0, false, err
	}
	return e.value(), e.timestamp(), true, nil
}

// forgot notes that a row may be in the engine alone now. The first record of a key in a new window is the most frequent
// miss of all, and the engine cannot have it: what it has of windows that began after the state was opened came through
// the overlay, and whatever leaves the overlay, by eviction or abort, or comes into the engine past it, by restoring,
// is noted here. So new windows cost no look-up in the engine while they fit into the overlay.
func (s *windowStore) forgot(start int64) { s.whole = max(s.whole, start) }

func (s *windowStore) Put(key []byte, start int64, value []byte, ts int64) error {
	if start < 0 {
		return fmt.Errorf("store %q: put: window start %d is negative: windows begin at the epoch", s.spec.Name, start)
	}
	s.clock.observed = max(s.clock.observed, start)
	if s.clock.expired(start) {
		s.state.stats.ExpiredPuts++
		return nil
	}
	s.key = appendWindowKey(s.key[:0], s.clock.segment(start), key, start)
	return s.put(s.key, value, ts)
}

func (s *windowStore) Fetch(key []byte, fromStart, toStart int64, fn func(start int64, value []byte, ts int64) bool) error {
	lo, hi := s.lo, s.hi
	s.lo, s.hi = nil, nil // a fetch inside fn makes its own
	more, damaged := true, error(nil)
	each := func(engineKey, row []byte) bool {
		value, ts, err := splitRow(s.state.dir, row)
		if err != nil {
			damaged = err
			return false
		}
		start := windowStart(engineKey)
		// fn may have advanced the observed time.
		more = s.clock.expired(start) || fn(start, value, ts)
		return more
	}
	err := s.clock.fetch(fromStart, toStart, func(segment uint64, from, to int64) (bool, error) {
		lo, hi = windowBounds(lo[:0], hi[:0], s.id, segment, key, from, to)
		err := s.scan(lo, hi, each)
		if err == nil {
			err = damaged
		}
		return more, err
	})
	s.lo, s.hi = lo, hi
	return err
}

// fetch calls scan for each segment that has live windows with fromStart <= start <= toStart, in ascending order, until
// it returns false.
func (c *segmentClock) fetch(fromStart, toStart int64, scan func(segment uint64, from, to int64) (bool, error)) error {
	from, to := max(fromStart, c.oldest()), min(toStart, c.observed)
	if from > to {
		return nil
	}
	for segment, last := c.segment(from), c.segment(to); segment <= last; segment++ {
		if more, err := scan(segment, from, to); err != nil || !more {
			return err
		}
	}
	return nil
}

// windowBounds appends the engine range of one key's windows in one segment.
func windowBounds(lo, hi []byte, id uint16, segment uint64, key []byte, from, to int64) ([]byte, []byte) {
	lo = appendWindowKey(appendStorePrefix(lo, id), segment, key, from)
	hi = appendWindowKey(appendStorePrefix(hi, id), segment, key, to)
	return lo, append(hi, 0) // the successor of to, which is included
}

// expire adds the deletion of segments that died since the last time to the batch, one range for all of them. It has to
// come after the writes of the same batch, which may lie in such a segment.
func (c *segmentClock) expire(b *Batch, id uint16) {
	floor := c.segment(c.oldest())
	if floor <= c.floor {
		return
	}
	lo := binary.BigEndian.AppendUint64(appendStorePrefix(nil, id), 0)
	hi := binary.BigEndian.AppendUint64(appendStorePrefix(nil, id), floor)
	b.DeleteRange(lo, hi)
}
