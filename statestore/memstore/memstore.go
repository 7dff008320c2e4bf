// Package memstore is a state engine in memory, for tests, the in-process test driver, and stores whose loss does not
// matter.
//
// It keeps the promises of every engine, durability included: what a [Disk] holds survives closing and opening, and a
// [Disk.Crash] takes back what was not flushed, to an exact prefix of the applied batches. The disk is a pointer to an
// immutable tree, so flush, snapshot and crash cost nothing, and readers need no lock.
package memstore

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/millrace-io/millrace/statestore"
)

// Disk is what outlives a [Store]. The zero value is an empty disk.
type Disk struct {
	flushed atomic.Pointer[node]
	open    atomic.Pointer[Store]
}

// Open opens the engine that lives on the disk. Only one may be open at a time.
func (d *Disk) Open() (*Store, error) {
	s := &Store{disk: d}
	s.root.Store(d.flushed.Load())
	if !d.open.CompareAndSwap(nil, s) {
		return nil, &statestore.StoreError{
			Op: "open", Err: errors.New("the store in memory is open already"), Hint: "close the other one first",
		}
	}
	return s, nil
}

// Crash returns a disk with what had been flushed, as if the process had died now. The old disk and its store go on
// alone.
func (d *Disk) Crash() *Disk {
	after := new(Disk)
	after.flushed.Store(d.flushed.Load())
	return after
}

// Store is an open engine in memory. See [statestore.Engine] for which goroutine may call what.
type Store struct {
	disk   *Disk
	root   atomic.Pointer[node]
	closed atomic.Bool
}

// New returns an empty store whose content is lost with it.
func New() *Store {
	s := &Store{disk: new(Disk)}
	s.disk.open.Store(s)
	return s
}

// Get implements [statestore.Reader].
func (s *Store) Get(dst, key []byte) ([]byte, bool, error) {
	return view{s, s.root.Load()}.Get(dst, key)
}

// Scan implements [statestore.Reader].
func (s *Store) Scan(lo, hi []byte, fn func(key, value []byte) bool) error {
	return view{s, s.root.Load()}.Scan(lo, hi, fn)
}

// Apply implements [statestore.Engine].
func (s *Store) Apply(b *statestore.Batch) error {
	if s.closed.Load() {
		return statestore.ErrClosed
	}
	root := s.root.Load()
	err := b.Each(func(kind statestore.OpKind, first, second []byte) error {
		switch kind {
		case statestore.OpSet:
			root = root.set(bytes.Clone(first), bytes.Clone(second))
		case statestore.OpDelete:
			root = root.delete(first)
		case statestore.OpDeleteRange:
			root = root.deleteRange(first, second)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.root.Store(root)
	return nil
}

// Flush implements [statestore.Engine].
func (s *Store) Flush(ctx context.Context) error {
	if s.closed.Load() {
		return statestore.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.disk.flushed.Store(s.root.Load())
	return nil
}

// FlushIfDue implements [statestore.Engine]; there is never anything due.
func (s *Store) FlushIfDue(time.Time) {}

// Snapshot implements [statestore.Engine].
func (s *Store) Snapshot() (statestore.Snapshot, error) {
	if s.closed.Load() {
		return nil, statestore.ErrClosed
	}
	return view{s, s.root.Load()}, nil
}

// Close implements [statestore.Engine].
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return statestore.ErrClosed
	}
	s.disk.open.Store(nil)
	return nil
}

// view reads one version of a store.
type view struct {
	store *Store
	root  *node
}

func (v view) Get(dst, key []byte) ([]byte, bool, error) {
	if v.store.closed.Load() {
		return dst, false, statestore.ErrClosed
	}
	n, ok := v.root.get(key)
	if !ok {
		return dst, false, nil
	}
	return append(dst, n.value...), true, nil
}

func (v view) Scan(lo, hi []byte, fn func(key, value []byte) bool) error {
	if v.store.closed.Load() {
		return statestore.ErrClosed
	}
	v.root.scan(lo, hi, fn)
	return nil
}

func (v view) Close() error { return nil }
