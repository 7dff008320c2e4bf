package streams_test

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
)

// mentions fails unless the error names all that the user needs to know.
func mentions(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not mention %q", err, w)
		}
	}
}

// run starts an application that is expected to fail.
func (f *fixture) run(b *streams.Builder, cfg streams.Config) error {
	f.Helper()
	return f.start(b, cfg).wait()
}

func TestMissingSourceTopic(t *testing.T) {
	f := newFixture(t)
	b := streams.NewBuilder()
	b.Stream("no-such-topic", serde.Bytes, serde.String).To(f.counts, serde.Bytes, serde.String)
	err := f.run(b, f.config("wc-0"))
	if e := as(t, err, streams.KindTopic); e.Topic != "no-such-topic" {
		t.Errorf("the error is about topic %q", e.Topic)
	}
	mentions(t, err, "no-such-topic", "create it")
}

func TestMissingSinkTopic(t *testing.T) {
	f := newFixture(t)
	b := streams.NewBuilder()
	b.Stream(f.lines, serde.Bytes, serde.String).To("no-such-sink", serde.Bytes, serde.String)
	err := f.run(b, f.config("wc-0"))
	if e := as(t, err, streams.KindTopic); e.Topic != "no-such-sink" {
		t.Errorf("the error is about topic %q", e.Topic)
	}
	mentions(t, err, "the topology writes", "no-such-sink")
}

// Two topics that feed one state must have equal partition counts, or a key's records would meet in different tasks.
func TestSourceTopicsWithUnequalPartitions(t *testing.T) {
	f := newClient(t, brokers(t))
	f.create(4, f.lines)
	f.create(3, f.counts)
	b := streams.NewBuilder()
	b.StreamTopics([]string{f.lines, f.counts}, serde.String, serde.String).GroupByKey().Count("by-key")
	err := f.run(b, f.config("wc-0"))
	as(t, err, streams.KindTopic)
	mentions(t, err, f.lines+" has 4", f.counts+" has 3", "repartition one side")
}

func TestBrokerNotReachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // nobody answers there
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	listener.Close()
	f := newClient(t, []string{addr})
	b, _ := f.wordCount()
	cfg := f.config("wc-0")
	cfg.StartTimeout = 300 * time.Millisecond
	err = f.run(b, cfg)
	as(t, err, streams.KindBroker)
	mentions(t, err, addr, "300ms")
}

func TestUserPanicEndsTheApplicationWithItsPlace(t *testing.T) {
	f := newFixture(t)
	b := streams.NewBuilder()
	log := new(strings.Builder) // the handler locks it, and nothing is logged after the end
	cfg := f.config("wc-0")
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	b.Stream(f.lines, serde.Bytes, serde.String).
		MapValues(func(s string) string {
			if s == "boom" {
				panic("the mill broke")
			}
			return s
		}, streams.Named("grind")).
		To(f.counts, serde.Bytes, serde.String)
	app := f.start(b, cfg)
	f.produce("fine", "boom")
	err := app.wait()
	e := as(t, err, streams.KindProcess)
	if e.Topic != f.lines || e.Operator != "grind" || e.Offset < 0 || e.Partition < 0 || e.Task == "" || e.Thread == "" || len(e.Stack) == 0 {
		t.Errorf("the error lacks coordinates: %+v", e)
	}
	mentions(t, err, "panic: the mill broke")
	if !strings.Contains(log.String(), "app_fault_test.go") {
		t.Errorf("the stack is not in the log:\n%s", log)
	}
	if got := app.State(); got != streams.Failed {
		t.Errorf("state %v after the failure", got)
	}
}

func TestGoexitInAUserFunctionEndsTheApplication(t *testing.T) {
	f := newFixture(t)
	b := streams.NewBuilder()
	b.Stream(f.lines, serde.Bytes, serde.String).
		Peek(func([]byte, string) { runtime.Goexit() }).
		GroupByKey().Count("by-key")
	app := f.start(b, f.config("wc-0"))
	f.produceRecord(&kgo.Record{Topic: f.lines, Key: []byte("k"), Value: []byte("v")})
	err := app.wait()
	as(t, err, streams.KindProcess)
	mentions(t, err, "Goexit")
	if got := app.State(); got != streams.Failed {
		t.Errorf("state %v after the failure", got)
	}
}

func TestUndecodableRecord(t *testing.T) {
	build := func(f *fixture) *streams.Builder {
		b := streams.NewBuilder()
		b.Stream(f.lines, serde.Bytes, serde.Int64).To(f.counts, serde.Bytes, serde.Int64)
		return b
	}
	t.Run("fails by default", func(t *testing.T) {
		f := newFixture(t)
		app := f.start(build(f), f.config("wc-0"))
		f.produceRecord(&kgo.Record{Topic: f.lines, Key: []byte("k"), Value: []byte("abc")})
		err := app.wait()
		if e := as(t, err, streams.KindDecode); e.Topic != f.lines || e.Offset != 0 {
			t.Errorf("coordinates: %+v", e)
		}
	})
	t.Run("is skipped and counted", func(t *testing.T) {
		f := newFixture(t)
		cfg := f.config("wc-0")
		cfg.OnDecodeError = func(e *streams.Error, r streams.RawRecord) streams.Decision {
			if string(r.Value) != "abc" || e.Topic != f.lines {
				t.Errorf("asked about %q of %s", r.Value, e.Topic)
			}
			return streams.Skip
		}
		app := f.start(build(f), cfg)
		f.produceRecord(&kgo.Record{Topic: f.lines, Key: []byte("k"), Value: []byte("abc")})
		good, err := serde.Int64.Append(nil, 42)
		if err != nil {
			t.Fatal(err)
		}
		f.produceRecord(&kgo.Record{Topic: f.lines, Key: []byte("k"), Value: good})
		f.countsUntil(map[string]int64{"k": 42})
		dropped := 0.0
		families, err := app.Gatherer().Gather()
		if err != nil {
			t.Fatal(err)
		}
		app.end()
		for _, family := range families {
			if family.GetName() != "millrace_dropped_records_total" {
				continue
			}
			for _, m := range family.GetMetric() {
				dropped += m.GetCounter().GetValue()
			}
		}
		if dropped != 1 {
			t.Errorf("%v records are counted as dropped, want 1", dropped)
		}
	})
}

// A second process with the same client id takes over; the older one stops and says so. It never joins again (promise P6).
func TestFencedByADuplicate(t *testing.T) {
	guarantees(t, func(t *testing.T, g streams.Guarantee) {
		f := newFixture(t)
		b, _ := f.wordCount()
		cfg := f.config("wc-0")
		cfg.Guarantee = g
		older := f.start(b, cfg)
		older.until(streams.Running)

		cfg.StateDir = t.TempDir()
		b, _ = f.wordCount()
		newer := f.start(b, cfg)
		err := older.wait()
		as(t, err, streams.KindFenced)
		mentions(t, err, "wc-0-StreamThread-", f.app, "client id")
		var fenced *membership.FencedError
		if !errors.As(err, &fenced) {
			t.Errorf("%v does not wrap a FencedError", err)
		}
		f.produce(poem...)
		f.countsUntil(poemCounts)
		newer.end()
	})
}

// A second start on the same state directory fails before it says anything to the group, so it fences nobody.
func TestSameStateDirectoryTwice(t *testing.T) {
	f := newFixture(t)
	b, _ := f.wordCount()
	cfg := f.config("wc-0")
	first := f.start(b, cfg)
	first.untilSpread(4)
	generation := first.Threads()[0].Generation

	b, _ = f.wordCount()
	err := f.run(b, cfg)
	as(t, err, streams.KindState)
	mentions(t, err, cfg.StateDir)
	f.produce(poem...)
	f.countsUntil(poemCounts)
	if got := first.Threads()[0].Generation; got != generation {
		t.Errorf("generation %d became %d", generation, got)
	}
	first.end()
}

func TestStateDirectoryOfAnotherCluster(t *testing.T) {
	f := newFixture(t)
	b, _ := f.wordCount()
	cfg := f.config("wc-0")
	app := f.start(b, cfg)
	app.until(streams.Running)
	app.end()

	b, _ = f.wordCount()
	cfg.Brokers = embedded(t)
	err := f.run(b, cfg)
	as(t, err, streams.KindState)
	var identity *statestore.IdentityError
	if !errors.As(err, &identity) || identity.What != statestore.ClusterMismatch {
		t.Errorf("%v does not tell that the cluster differs", err)
	}
}

// State that was made by another application is refused, never overwritten.
func TestStateDirectoryOfAnotherApplication(t *testing.T) {
	f := newFixture(t)
	b, _ := f.wordCount()
	cfg := f.config("wc-0")
	app := f.start(b, cfg)
	app.until(streams.Running)
	f.produce(poem...)
	f.countsUntil(poemCounts)
	app.end()

	if err := os.Rename(filepath.Join(cfg.StateDir, f.app), filepath.Join(cfg.StateDir, "other")); err != nil {
		t.Fatal(err)
	}
	b, _ = f.wordCount()
	cfg.AppID = "other"
	err := f.run(b, cfg)
	as(t, err, streams.KindState)
	mentions(t, err, "other", f.app)
}
