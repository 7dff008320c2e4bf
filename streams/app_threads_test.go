package streams_test

import (
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
)

// S134: a thread that is removed leaves, once; one that is added then is the same instance again.
func TestThreadsAreRemovedAndAdded(t *testing.T) {
	f := newFixture(t)
	cfg := f.config("wc-0")
	cfg.Threads = 3
	w := watched(&cfg)
	b, _ := f.wordCount()
	app := f.start(b, cfg)
	before := f.settled(8, app)
	name, err := app.RemoveThread(t.Context())
	if err != nil || name != "wc-0-StreamThread-3" {
		t.Fatalf("removed %q, %v", name, err)
	}
	if n := w.leaveGroups(); n != 1 {
		t.Errorf("%d LeaveGroup requests were sent, want 1", n)
	}
	f.wantInstances("wc-0-StreamThread-1", "wc-0-StreamThread-2")
	if after := f.settled(8, app); after != before+1 {
		t.Errorf("generation %d after %d, want one step", after, before)
	}
	f.produce(poem...)
	f.countsUntil(poemCounts)
	if name, err = app.AddThread(t.Context()); err != nil || name != "wc-0-StreamThread-3" {
		t.Fatalf("added %q, %v", name, err)
	}
	f.eventually("tasks of the new thread", func() bool { all := app.Threads(); return len(all) == 3 && len(all[2].Active) > 1 })
	f.settled(8, app)
	f.wantInstances("wc-0-StreamThread-1", "wc-0-StreamThread-2", "wc-0-StreamThread-3")
	f.produce(poem...)
	twice := maps.Clone(poemCounts)
	for w := range twice {
		twice[w] *= 2
	}
	f.countsUntil(twice)
	for range 2 {
		if _, err := app.RemoveThread(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if name, err := app.RemoveThread(t.Context()); err == nil {
		t.Errorf("the last thread %s was removed", name)
	}
	app.end()
	if _, err := app.AddThread(t.Context()); err != streams.ErrNotRunning {
		t.Errorf("adding after the end: %v, want ErrNotRunning", err)
	}
}

// S135: a thread that has died is replaced in its own place: the same instance id, no ghost beside it, and nobody rebalances.
func TestDeadThreadIsReplacedInItsPlace(t *testing.T) {
	streams.SetReplacePause(t, time.Millisecond)
	f := newFixture(t)
	var once sync.Once
	b := streams.NewBuilder()
	b.Stream(f.lines, serde.Bytes, serde.String).FlatMapValues(strings.Fields).MapValues(func(s string) string {
		if s == "stone" {
			once.Do(func() { panic("no grist") })
		}
		return s
	}).GroupBy(func(_ []byte, w string) string { return w }, serde.String).Count("word-counts").ToStream().To(f.counts, serde.String, serde.Int64)
	cfg := f.config("wc-0")
	cfg.Threads, cfg.Guarantee = 3, streams.ExactlyOnce
	died := make(chan *streams.Error, 10)
	cfg.OnThreadError = func(e *streams.Error) streams.ThreadDecision { died <- e; return streams.ReplaceThread }
	w := watched(&cfg)
	app := f.start(b, cfg)
	before := f.settled(8, app)
	f.produce("stone", "mill", "stone mill")
	select {
	case e := <-died:
		if e.Kind != streams.KindProcess || !strings.HasPrefix(e.Thread, "wc-0-StreamThread-") {
			t.Errorf("the handler was asked about %v", e)
		}
	case <-time.After(limit):
		t.Fatal("no thread died")
	}
	f.countsUntil(map[string]int64{"stone": 2, "mill": 2})
	if after := f.settled(8, app); after != before {
		t.Errorf("generation %d, want %d as before", after, before)
	}
	f.wantInstances("wc-0-StreamThread-1", "wc-0-StreamThread-2", "wc-0-StreamThread-3")
	if n := w.leaveGroups(); n != 0 {
		t.Errorf("%d LeaveGroup requests were sent, want none", n)
	}
	if len(died) > 0 {
		t.Errorf("another thread died: %v", <-died)
	}
	app.end()
}

// A process that starts with fewer threads removes what the others have left, in one batch: its tasks do not wait for the end of
// their sessions.
func TestSurplusInstancesAreRemoved(t *testing.T) {
	f := newFixture(t)
	cfg := f.config("wc-0")
	cfg.Threads, cfg.SessionTimeout = 4, 5*time.Minute
	b, _ := f.wordCount()
	app := f.start(b, cfg)
	neighbour := f.config("wc-00")
	neighbour.Threads = 1
	b, _ = f.wordCount()
	beside := f.start(b, neighbour)
	f.settled(8, app, beside)
	app.end()
	cfg.Threads, cfg.RemoveSurplus = 1, true
	w := watched(&cfg)
	b, _ = f.wordCount()
	app = f.start(b, cfg)
	f.settled(8, app, beside)
	f.wantInstances("wc-0-StreamThread-1", "wc-00-StreamThread-1")
	if n := w.leaveGroups(); n != 1 {
		t.Errorf("%d LeaveGroup requests were sent, want 1", n)
	}
	app.end()
	// With nothing to remove nothing is sent.
	b, _ = f.wordCount()
	app = f.start(b, cfg)
	f.settled(8, app, beside)
	app.end()
	if n := w.leaveGroups(); n != 1 {
		t.Errorf("%d LeaveGroup requests were sent, want no other", n)
	}
	beside.end()
}
