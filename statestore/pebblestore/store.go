package pebblestore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace-io/millrace/statestore"
)

// Store is the database of one task. See [statestore.Engine] for which goroutine may call what.
type Store struct {
	db     *pebble.DB
	lock   *pebble.Lock
	dir    string
	cfg    Config
	health *health
	gate   *diskGate
	guard  *guard

	mu        sync.Mutex
	snapshots map[*snapshot]struct{} // open ones; guarded by mu

	// The owner's goroutine alone uses what follows.
	closed   bool
	hung     error         // a write whose fate is unknown: nothing more is written
	dirty    bool          // applied since the last flush began
	due      time.Time     // when to flush in the background; zero until it is known
	interval time.Duration // between flushes, with this store's jitter
	flushes  sync.WaitGroup
}

var _ statestore.Engine = (*Store)(nil)

// Get implements [statestore.Reader].
func (s *Store) Get(dst, key []byte) ([]byte, bool, error) {
	if s.closed {
		return dst, false, statestore.ErrClosed
	}
	return get(s.db, s.health, dst, key)
}

// Scan implements [statestore.Reader].
func (s *Store) Scan(lo, hi []byte, fn func(key, value []byte) bool) error {
	if s.closed {
		return statestore.ErrClosed
	}
	return scan(s.db, s.health, lo, hi, fn)
}

func get(r pebble.Reader, h *health, dst, key []byte) ([]byte, bool, error) {
	value, closer, err := r.Get(key)
	if err == pebble.ErrNotFound {
		return dst, false, nil
	}
	if err != nil {
		return dst, false, h.fail("read", err)
	}
	dst = append(dst, value...)
	if err := closer.Close(); err != nil {
		return dst, false, h.fail("read", err)
	}
	return dst, true, nil
}

func scan(r pebble.Reader, h *health, lo, hi []byte, fn func(key, value []byte) bool) error {
	if len(lo) == 0 {
		lo = nil // pebble's checks under the race detector cannot take an empty bound
	}
	iter, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return h.fail("read", err)
	}
	for ok := iter.First(); ok; ok = iter.Next() {
		value, err := iter.ValueAndErr()
		if err != nil {
			return errors.Join(h.fail("read", err), iter.Close())
		}
		if !fn(iter.Key(), value) {
			break
		}
	}
	if err := errors.Join(iter.Error(), iter.Close()); err != nil {
		return h.fail("read", err)
	}
	return nil
}

// ready reports why the store takes no write; full is closed when the disk is found full later.
func (s *Store) ready(op string) (full <-chan struct{}, err error) {
	switch {
	case s.closed:
		return nil, statestore.ErrClosed
	case s.hung != nil:
		return nil, s.hung
	}
	if err := s.health.check(op); err != nil {
		return nil, err
	}
	return s.gate.check(op, s.dir)
}

// batchOverhead is what pebble adds to a batch: a header, and kind and lengths for each operation.
const batchOverhead = 12

// Apply implements [statestore.Engine]. An error that is Stalled means that nothing was applied and the same batch may
// be applied later.
func (s *Store) Apply(b *statestore.Batch) error {
	if _, err := s.ready("apply"); err != nil {
		return err
	}
	batch := s.db.NewBatchWithSize(b.Size() + batchOverhead*(b.Len()+1))
	err := b.Each(func(kind statestore.OpKind, first, second []byte) error {
		switch kind {
		case statestore.OpSet:
			return batch.Set(first, second, nil)
		case statestore.OpDelete:
			return batch.Delete(first, nil)
		default:
			return batch.DeleteRange(first, second, nil)
		}
	})
	if err != nil {
		return errors.Join(s.health.fail("apply", err), batch.Close())
	}
	// On a goroutine of its own, because pebble holds a writer without end while the disk cannot take its memtables.
	done := make(chan error, 1)
	go func() { done <- errors.Join(batch.Commit(pebble.NoSync), batch.Close()) }()
	if err := s.wait("apply", done); err != nil {
		s.hung = err
		return err
	}
	s.dirty = true
	return nil
}

// wait waits for a write: its end, a fatal error, or the stall timeout.
func (s *Store) wait(op string, done <-chan error) error {
	timeout := time.NewTimer(s.cfg.StallTimeout)
	defer timeout.Stop()
	select {
	case err := <-done:
		if err != nil {
			return s.health.fail(op, err)
		}
		return nil
	case <-s.health.died:
		return s.health.fatal.Load()
	case <-timeout.C:
		return &statestore.StoreError{
			Op: op, Dir: s.dir, Hint: hintHung,
			Err: errors.New("no answer within " + s.cfg.StallTimeout.String() + ", its outcome is unknown"),
		}
	}
}

// Flush implements [statestore.Engine].
func (s *Store) Flush(ctx context.Context) error {
	full, err := s.ready("flush")
	if err != nil {
		return err
	}
	select {
	case <-s.health.alarm: // of an earlier streak
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // whoever waits for a flush that does not end must not keep Close waiting
	done := make(chan error, 1)
	s.flushes.Go(func() {
		flushed, err := s.db.AsyncFlush()
		if err == nil {
			select {
			case <-flushed:
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		done <- err
	})
	select {
	case err := <-done:
		if err != nil {
			return s.health.fail("flush", err)
		}
		s.dirty, s.due = false, time.Time{}
		return nil
	case <-s.health.alarm:
		return s.health.stalled("flush")
	case <-full:
		return fullError("flush", s.dir)
	case <-s.health.died:
		return s.health.fatal.Load()
	case <-ctx.Done():
		return s.health.fail("flush", ctx.Err())
	}
}

// FlushIfDue implements [statestore.Engine].
func (s *Store) FlushIfDue(now time.Time) {
	switch {
	case !s.dirty:
		return
	case s.due.IsZero():
		s.due = now.Add(s.interval)
		return
	case now.Before(s.due):
		return
	}
	if _, err := s.ready("flush"); err != nil {
		return // the owner hears of it at its next commit
	}
	s.dirty, s.due = false, time.Time{}
	// Rotating the memtable can wait for room; a failure shows in the health of the store.
	s.flushes.Go(func() { _, _ = s.db.AsyncFlush() })
}
