package streams_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/pebblestore"
	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
)

// fullDisk is an engine whose disk is full from some moment on.
type fullDisk struct {
	statestore.Engine
	full    *atomic.Bool
	refused *atomic.Int64
}

func (e *fullDisk) Apply(b *statestore.Batch) error {
	if e.full.Load() {
		e.refused.Add(1)
		return &statestore.StoreError{Op: "apply", Dir: "/state", Err: errors.New("no space left on device"), Hint: "make room on the disk", Stalled: true}
	}
	return e.Engine.Apply(b)
}

// A disk that stays full when state is to be committed ends the application with a word about it. After there is room again, nothing is
// lost and nothing is counted twice, because what Kafka has decided is restored from the changelog.
func TestDiskStaysFull(t *testing.T) {
	streams.SetCommitTimeout(t, time.Second)
	f := newFixture(t)
	var full atomic.Bool
	streams.SetEngineWrapper(t, func(e statestore.Engine) statestore.Engine { return &fullDisk{e, &full, new(atomic.Int64)} })
	cfg := f.config("wc-0")
	cfg.Guarantee = streams.ExactlyOnce
	b, _ := f.wordCount()
	app := f.start(b, cfg)
	f.produce(poem...)
	f.countsUntil(poemCounts)
	app.untilSpread(4)
	full.Store(true)
	f.produce("the disk is full")
	err := app.wait()
	as(t, err, streams.KindState)
	mentions(t, err, "no space left", "make room", "/state")

	full.Store(false)
	b, _ = f.wordCount()
	app = f.start(b, cfg)
	f.produce(poem...)
	f.countsUntil(map[string]int64{"the": 7, "mill": 4, "grinds": 2, "race": 4, "runs": 2, "disk": 1, "is": 1, "full": 1})
	app.end()
}

// A disk that is full for a while only delays.
func TestDiskFullForAWhile(t *testing.T) {
	f := newFixture(t)
	var full atomic.Bool
	var refused atomic.Int64
	streams.SetEngineWrapper(t, func(e statestore.Engine) statestore.Engine { return &fullDisk{e, &full, &refused} })
	b, _ := f.wordCount()
	app := f.start(b, f.config("wc-0"))
	f.produce(poem...)
	f.countsUntil(poemCounts)
	app.untilSpread(4)
	full.Store(true)
	f.produce("the mill")
	f.eventually("a commit to be refused", func() bool { return refused.Load() > 0 })
	full.Store(false)
	f.produce("race runs")
	f.countsUntil(map[string]int64{"the": 4, "mill": 3, "grinds": 1, "race": 3, "runs": 2})
	app.end()
}

// A store that met a fatal error ends the application in an orderly way, though nobody writes to it: the other stores are committed, and the
// places in the group are kept for the restart that helps.
func TestFatalStoreEndsTheApplication(t *testing.T) {
	var fatal func(*statestore.StoreError)
	streams.SetStoreTuning(t, func(c pebblestore.Config) pebblestore.Config { fatal = c.OnFatal; return c })
	f := newFixture(t)
	cfg := f.config("wc-0")
	cfg.CloseMode = streams.Leave
	w := watched(&cfg)
	b, _ := f.wordCount()
	app := f.start(b, cfg)
	f.produce(poem...)
	f.countsUntil(poemCounts)
	lost := &statestore.StoreError{Op: "write", Dir: "/state/task", Err: errors.New("the manifest cannot be written"), Hint: "restart the process"}
	fatal(lost)
	fatal(lost) // of another task: nobody waits
	err := app.wait()
	if e := as(t, err, streams.KindState); !errors.Is(e, lost) {
		t.Errorf("the error is %v", e)
	}
	mentions(t, err, "/state/task", "manifest", "restart")
	if n := w.leaveGroups(); n != 0 {
		t.Errorf("%d LeaveGroup requests were sent, want none", n)
	}
	b, _ = f.wordCount()
	app = f.start(b, cfg)
	app.untilSpread(4)
	if n := app.metric("millrace_restored_records_total"); n != 0 {
		t.Errorf("%v records were restored after an orderly end, want none", n)
	}
	app.end()
}

// A user function that outlasts the transaction time-out costs the transaction, not the result.
func TestSlowFunctionOutlastsItsTransaction(t *testing.T) {
	f := newFixture(t)
	var slow atomic.Bool
	b := streams.NewBuilder()
	b.Stream(f.lines, serde.Bytes, serde.String).
		GroupBy(func(_ []byte, w string) string {
			if w == "slow" && slow.CompareAndSwap(true, false) {
				time.Sleep(1500 * time.Millisecond) // real time passes for the broker, too: that is what is tested
			}
			return w
		}, serde.String).
		Count("word-counts").
		ToStream().To(f.counts, serde.String, serde.Int64)
	cfg := f.config("wc-0")
	cfg.Guarantee, cfg.Threads, cfg.TransactionTimeout = streams.ExactlyOnce, 1, time.Second
	cfg.CommitInterval = 900 * time.Millisecond // so that a transaction is open when the slow record comes, most of the time
	app := f.start(b, cfg)
	app.untilSpread(8)
	want := map[string]int64{}
	for app.metric("millrace_transactions_aborted_total") == 0 {
		if want["slow"]++; want["slow"] > 10 {
			t.Fatal("no transaction was aborted")
		}
		slow.Store(true)
		f.produce("fast", "fast", "fast", "fast", "slow", "fast", "fast", "fast", "fast")
		want["fast"] += 8
		f.countsUntil(want)
	}
	app.end()
}
