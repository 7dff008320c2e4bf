package statestore

import (
	"context"
	"time"
)

// Engine is one task's base: an ordered map from bytes to bytes that takes atomic batches and recovers, after any
// crash, to an exact prefix of the batches applied to it.
//
// One goroutine, the owner, calls every method but Snapshot, which any goroutine may call at any time, even while
// Close runs. Failures are *[StoreError] with what happened, where, and what to do.
type Engine interface {
	Reader
	// Apply applies the batch atomically. It need not be durable on return. After an error the owner must assume
	// neither outcome: it closes the engine and opens it again.
	Apply(b *Batch) error
	// Flush makes everything applied so far durable; it ends early with an error when ctx does.
	Flush(ctx context.Context) error
	// FlushIfDue starts a flush in the background when there is something to flush and the last flush is long enough
	// ago. It never waits.
	FlushIfDue(now time.Time)
	// Snapshot returns a view of what has been applied so far. Close of the engine ends open snapshots: they then
	// answer [ErrClosed].
	Snapshot() (Snapshot, error)
	// Close releases everything without flushing: what was not flushed may be lost.
	Close() error
}

// Reader reads the bytes of an engine or of a snapshot.
type Reader interface {
	// Get appends the value of key to dst and returns the extended slice; ok is false, and dst returned as it was,
	// when there is none. key may alias dst.
	Get(dst, key []byte) (value []byte, ok bool, err error)
	// Scan calls fn for the entries with lo <= key < hi in ascending order until fn returns false. The slices are
	// valid until fn returns. fn may read the engine but not write it.
	Scan(lo, hi []byte, fn func(key, value []byte) bool) error
}

// Snapshot is an immutable view of an engine, for one goroutine at a time. It pins disk space until it is closed.
type Snapshot interface {
	Reader
	Close() error
}
