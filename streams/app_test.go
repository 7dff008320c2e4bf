package streams_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
)

// limit bounds every wait of these tests; it is generous, because the machine may be busy with other things.
const limit = 60 * time.Second

// running is an application that runs.
type running struct {
	*streams.App
	t      *testing.T
	stop   context.CancelFunc
	done   chan error
	states chan streams.State
}

func (f *fixture) start(b *streams.Builder, cfg streams.Config) *running {
	f.Helper()
	states := make(chan streams.State, 1000)
	listen := cfg.OnStateChange
	cfg.OnStateChange = func(from, to streams.State) {
		if listen != nil {
			listen(from, to)
		}
		states <- to
	}
	app, err := streams.New(b, cfg)
	if err != nil {
		f.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{App: app, t: f.T, stop: stop, done: make(chan error, 1), states: states}
	go func() { r.done <- app.Run(ctx) }()
	f.Cleanup(func() { stop() })
	return r
}

// until waits for a state.
func (r *running) until(want streams.State) {
	r.t.Helper()
	deadline := time.After(limit)
	for {
		select {
		case got := <-r.states:
			if got == want {
				return
			}
		case err := <-r.done:
			r.t.Fatalf("the application ended while waiting for %v: %v", want, err)
		case <-deadline:
			r.t.Fatalf("not %v within %v", want, limit)
		}
	}
}

// untilSpread waits until every thread runs so many tasks.
func (r *running) untilSpread(each int) {
	r.t.Helper()
	for {
		r.until(streams.Running)
		even := true
		for _, s := range r.Threads() {
			even = even && len(s.Active) == each
		}
		if even {
			return
		}
	}
}

// end stops the application gracefully.
func (r *running) end() {
	r.t.Helper()
	r.stop()
	if err := r.wait(); err != nil {
		r.t.Fatalf("graceful stop: %v", err)
	}
}

// wait returns what Run returned.
func (r *running) wait() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(limit):
		r.t.Fatalf("the application did not end within %v; it is %v", limit, r.State())
		return nil
	}
}

// produce writes lines, spread over all partitions.
func (f *fixture) produce(lines ...string) {
	f.Helper()
	for i, line := range lines {
		f.produceRecord(&kgo.Record{Topic: f.lines, Key: fmt.Append(nil, i), Value: []byte(line)})
	}
}

func (f *fixture) produceRecord(r *kgo.Record) {
	f.Helper()
	if err := f.client.ProduceSync(f.Context(), r).FirstErr(); err != nil {
		f.Fatal(err)
	}
}

// countsUntil reads the sink, committed records only, until the latest counts are the wanted ones.
func (f *fixture) countsUntil(want map[string]int64) {
	f.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...), kgo.ConsumeTopics(f.counts), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		f.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(f.Context(), limit)
	defer cancel()
	got := map[string]int64{}
	for !maps.Equal(got, want) {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			f.Fatalf("counts did not arrive within %v:\n%s", limit, cmp.Diff(want, got))
		}
		fetches.EachRecord(func(r *kgo.Record) {
			n, err := serde.Int64.Decode(r.Value)
			if err != nil {
				f.Errorf("value of %s: %v", r.Key, err)
			}
			got[string(r.Key)] = n
		})
	}
}

// eventually waits until a condition holds that nothing announces.
func (f *fixture) eventually(what string, holds func() bool) {
	f.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			f.Fatalf("waited %v for %s", limit, what)
		}
	}
}

var poem = []string{"the mill grinds", "the race runs", "the mill race"}

var poemCounts = map[string]int64{"the": 3, "mill": 2, "grinds": 1, "race": 2, "runs": 1}

func guarantees(t *testing.T, test func(*testing.T, streams.Guarantee)) {
	for _, g := range []streams.Guarantee{streams.AtLeastOnce, streams.ExactlyOnce} {
		t.Run(g.String(), func(t *testing.T) { test(t, g) })
	}
}

func TestWordCount(t *testing.T) {
	guarantees(t, func(t *testing.T, g streams.Guarantee) {
		f := newFixture(t)
		b, _ := f.wordCount()
		cfg := f.config("wc-0")
		cfg.Guarantee = g
		app := f.start(b, cfg)
		f.produce(poem...)
		f.countsUntil(poemCounts)
		app.end()
		if got := app.State(); got != streams.NotRunning {
			t.Errorf("state %v after the stop", got)
		}
	})
}

// as finds the *streams.Error that must be in err.
func as(t *testing.T, err error, kind streams.Kind) *streams.Error {
	t.Helper()
	var e *streams.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("got %v, want a *streams.Error of kind %v", err, kind)
	}
	return e
}
