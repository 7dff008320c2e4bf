package metadata

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// clock is a settable clock for one goroutine at a time.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func TestCacheLoadsAgainOnlyWhenOld(t *testing.T) {
	loads := 0
	c := &clock{at: time.Unix(0, 0)}
	cache := NewCache(func(context.Context) (Snapshot, error) {
		loads++
		return Snapshot{Generation: int32(loads)}, nil
	}, time.Second, c.now)
	for _, step := range []struct {
		advance time.Duration
		want    int32
	}{{0, 1}, {999 * time.Millisecond, 1}, {time.Millisecond, 2}, {time.Minute, 3}} {
		c.at = c.at.Add(step.advance)
		if s, err := cache.Get(t.Context()); err != nil || s.Generation != step.want {
			t.Errorf("after %v: load %d, %v; want load %d", step.advance, s.Generation, err, step.want)
		}
	}
}

func TestCacheServesTheLastSnapshotWithTheErrorOfTheAttempt(t *testing.T) {
	away := errors.New("coordinator away")
	var fail error
	loads := 0
	c := &clock{at: time.Unix(0, 0)}
	cache := NewCache(func(context.Context) (Snapshot, error) {
		loads++
		return Snapshot{State: "Stable"}, fail
	}, time.Second, c.now)

	fail = away
	if _, err := cache.Get(t.Context()); !errors.Is(err, away) {
		t.Fatalf("nothing known: %v, want the error of the load", err)
	}
	if _, err := cache.Get(t.Context()); !errors.Is(err, away) || loads != 1 {
		t.Fatalf("a failed load was repeated at once: %d loads, %v", loads, err)
	}
	fail = nil
	c.at = c.at.Add(time.Second)
	if s, err := cache.Get(t.Context()); err != nil || s.Stale != nil {
		t.Fatalf("%+v, %v; want a fresh snapshot", s, err)
	}
	fail = away
	c.at = c.at.Add(time.Second)
	if s, err := cache.Get(t.Context()); err != nil || !errors.Is(s.Stale, away) || s.State != "Stable" {
		t.Fatalf("%+v, %v; want the last snapshot, marked stale", s, err)
	}
	fail = nil
	c.at = c.at.Add(time.Second)
	if s, err := cache.Get(t.Context()); err != nil || s.Stale != nil {
		t.Fatalf("%+v, %v; want it fresh again", s, err)
	}
}

func TestCacheIsNotPoisonedByACallerThatGoesAway(t *testing.T) {
	c := &clock{at: time.Unix(0, 0)}
	cache := NewCache(func(ctx context.Context) (Snapshot, error) { return Snapshot{}, ctx.Err() }, time.Second, c.now)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 { // the free right to load and the ended context are both ready: either may be chosen
		if _, err := cache.Get(gone); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v, want the caller's own cancellation", err)
		}
	}
	if _, err := cache.Get(t.Context()); err != nil {
		t.Errorf("the next caller got %v", err)
	}
}

// TestCacheLoadsOnceForManyCallers holds the load until all callers have asked, as far as they can be seen to.
func TestCacheLoadsOnceForManyCallers(t *testing.T) {
	const callers = 20
	release := make(chan struct{})
	var loads int // written under the right to load
	cache := NewCache(func(context.Context) (Snapshot, error) {
		loads++
		<-release
		return Snapshot{}, nil
	}, time.Hour, time.Now)
	var started, done sync.WaitGroup
	for range callers {
		started.Add(1)
		done.Go(func() {
			started.Done()
			if _, err := cache.Get(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	started.Wait()
	close(release)
	done.Wait()
	if loads != 1 {
		t.Errorf("%d loads, want 1", loads)
	}
}

func TestCacheWaiterMayGiveUp(t *testing.T) {
	loading, release := make(chan struct{}), make(chan struct{})
	cache := NewCache(func(context.Context) (Snapshot, error) {
		close(loading)
		<-release
		return Snapshot{}, nil
	}, time.Hour, time.Now)
	var done sync.WaitGroup
	done.Go(func() {
		if _, err := cache.Get(t.Context()); err != nil {
			t.Error(err)
		}
	})
	<-loading
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cache.Get(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	close(release)
	done.Wait()
}
