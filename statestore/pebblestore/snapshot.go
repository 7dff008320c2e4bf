package pebblestore

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace-io/millrace/statestore"
)

// guard lets readers of other goroutines in until it is closed, and then waits for those that are inside. It is no
// read-write lock because a reader may begin another read inside the first one, even while Close waits.
type guard struct {
	mu     sync.Mutex
	inside int
	closed bool
	empty  chan struct{} // closed when closed and nobody is inside
}

func newGuard() *guard { return &guard{empty: make(chan struct{})} }

func (g *guard) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside++
	return true
}

func (g *guard) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside--; g.closed && g.inside == 0 {
		close(g.empty)
	}
}

// close lets nobody in any more and returns a channel that is closed when everybody has left.
func (g *guard) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		if g.inside == 0 {
			close(g.empty)
		}
	}
	return g.empty
}

// snapshot is an open view of a store.
type snapshot struct {
	store *Store
	snap  *pebble.Snapshot
}

// Snapshot implements [statestore.Engine].
func (s *Store) Snapshot() (statestore.Snapshot, error) {
	if !s.guard.enter() {
		return nil, statestore.ErrClosed
	}
	defer s.guard.leave()
	v := &snapshot{store: s, snap: s.db.NewSnapshot()}
	s.mu.Lock()
	s.snapshots[v] = struct{}{}
	s.mu.Unlock()
	return v, nil
}

// OpenSnapshots is the number of snapshots that were not closed yet. They pin disk space.
func (s *Store) OpenSnapshots() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.snapshots)
}

func (v *snapshot) Get(dst, key []byte) ([]byte, bool, error) {
	if !v.store.guard.enter() {
		return dst, false, statestore.ErrClosed
	}
	defer v.store.guard.leave()
	return get(v.snap, v.store.health, dst, key)
}

func (v *snapshot) Scan(lo, hi []byte, fn func(key, value []byte) bool) error {
	if !v.store.guard.enter() {
		return statestore.ErrClosed
	}
	defer v.store.guard.leave()
	return scan(v.snap, v.store.health, lo, hi, fn)
}

// Close releases the snapshot. After the store was closed it does nothing, for that released it.
func (v *snapshot) Close() error {
	if !v.store.guard.enter() {
		return nil
	}
	defer v.store.guard.leave()
	return v.store.release(v)
}

func (s *Store) release(v *snapshot) error {
	s.mu.Lock()
	_, open := s.snapshots[v]
	delete(s.snapshots, v)
	s.mu.Unlock()
	if !open {
		return nil
	}
	return v.snap.Close()
}
