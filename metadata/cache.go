package metadata

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// DefaultMaxAge is how old a snapshot may be before the coordinator is asked again.
const DefaultMaxAge = 2 * time.Second

// Cache keeps the last snapshot and asks for a new one when it is older than its maximum age.
//
// At most one load runs at a time; callers that come meanwhile wait for it, or for their own context. When a load fails,
// the last snapshot is served with [Snapshot.Stale] set, and for one maximum age nobody asks again: a coordinator that is
// away is not hammered, and requests are answered at once instead of each waiting for its own time-out.
//
// Methods may be called from any goroutine. No goroutine is started: a load runs in a caller's.
type Cache struct {
	load   func(context.Context) (Snapshot, error)
	maxAge time.Duration
	now    func() time.Time
	last   atomic.Pointer[attempt]
	loads  chan struct{} // holds the one right to load
}

// attempt is the outcome of one load. It is immutable once published.
type attempt struct {
	at       time.Time
	snapshot Snapshot // the last good one; zero when there was none
	good     bool     // snapshot is valid
	err      error    // of this attempt; nil when it gave the snapshot
}

// NewCache returns an empty cache over load. maxAge 0 stands for [DefaultMaxAge]; now is the clock, usually time.Now.
func NewCache(load func(context.Context) (Snapshot, error), maxAge time.Duration, now func() time.Time) *Cache {
	if maxAge <= 0 {
		maxAge = DefaultMaxAge
	}
	return &Cache{load: load, maxAge: maxAge, now: now, loads: make(chan struct{}, 1)}
}

// Get returns a snapshot that is not older than the maximum age, or an older one with Stale set, or an error when there
// is none at all: that of the load, or ctx's.
func (c *Cache) Get(ctx context.Context) (Snapshot, error) {
	if a := c.recent(); a != nil {
		return a.result()
	}
	select {
	case c.loads <- struct{}{}:
	case <-ctx.Done():
		return Snapshot{}, context.Cause(ctx)
	}
	defer func() { <-c.loads }()
	if a := c.recent(); a != nil { // the load that we waited for
		return a.result()
	}
	return c.reload(ctx)
}

// reload loads once and publishes the outcome. A load that ended because its caller went away says nothing about the
// coordinator: it is not published, so that the next caller tries again. One that ran into its caller's deadline does say
// something, and is.
func (c *Cache) reload(ctx context.Context) (Snapshot, error) {
	next := &attempt{}
	if old := c.last.Load(); old != nil {
		next.snapshot, next.good = old.snapshot, old.good
	}
	snapshot, err := c.load(ctx)
	next.at = c.now()
	if err == nil {
		next.snapshot, next.good = snapshot, true
	} else {
		next.err = err
	}
	if err == nil || !errors.Is(ctx.Err(), context.Canceled) {
		c.last.Store(next)
	}
	return next.result()
}

// recent is the last attempt if it is young enough to stand, nil otherwise.
func (c *Cache) recent() *attempt {
	a := c.last.Load()
	if a == nil || c.now().Sub(a.at) >= c.maxAge {
		return nil
	}
	return a
}

func (a *attempt) result() (Snapshot, error) {
	if !a.good {
		return Snapshot{}, a.err
	}
	s := a.snapshot
	s.Stale = a.err
	return s, nil
}
