package streams_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
)

// Processes come and go under load: tasks move with their state, and under exactly-once nothing is lost or counted twice.
func TestTasksMoveBetweenProcesses(t *testing.T) {
	f := newFixture(t)
	instance := func(name string) *running {
		cfg := f.config(name)
		cfg.Guarantee = streams.ExactlyOnce
		b, _ := f.wordCount()
		return f.start(b, cfg)
	}
	feeding, stopFeeding := context.WithCancel(t.Context())
	fed := make(chan int)
	go func() {
		n := 0
		for ; feeding.Err() == nil; n++ {
			word := fmt.Sprintf("w%d", n%37)
			record := &kgo.Record{Topic: f.lines, Key: []byte(word), Value: []byte(word)}
			if err := f.client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
				t.Error(err)
				break
			}
		}
		fed <- n
	}()
	first := instance("wc-0")
	first.untilSpread(4)
	second := instance("wc-1")
	second.untilSpread(2)
	first.untilSpread(2)
	if n := second.metric("millrace_restored_records_total"); n == 0 {
		t.Error("tasks moved to the second process without any state being restored")
	}
	if err := second.Close(t.Context(), streams.Leave); err != nil {
		t.Fatal(err)
	}
	if err := second.wait(); err != nil {
		t.Fatal(err)
	}
	first.untilSpread(4)
	stopFeeding()
	want := map[string]int64{}
	for i := range <-fed {
		want[fmt.Sprintf("w%d", i%37)]++
	}
	f.countsUntil(want)
	first.end()
}

// A user function that does not return must not hold its tasks for ever: the application ends and says which thread hangs.
func TestHangingUserFunction(t *testing.T) {
	f := newFixture(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	b := streams.NewBuilder()
	b.Stream(f.lines, serde.Bytes, serde.String).
		MapValues(func(s string) string { <-release; return s }).
		To(f.counts, serde.Bytes, serde.String)
	cfg := f.config("wc-0")
	cfg.ProgressTimeout, cfg.Threads = 50*time.Millisecond, 1
	streams.SetLingering(t, 100*time.Millisecond)
	app := f.start(b, cfg)
	f.produce("stone")
	err := app.wait()
	e := as(t, err, streams.KindStuck)
	if e.Thread != "wc-0-StreamThread-1" {
		t.Errorf("the error names thread %q", e.Thread)
	}
}

func TestDynamicMembersLeave(t *testing.T) {
	f := newFixture(t)
	cfg := f.config("")
	b, _ := f.wordCount()
	app := f.start(b, cfg)
	app.until(streams.Running)
	for _, s := range app.Threads() {
		if s.InstanceID != "" {
			t.Errorf("dynamic thread %s has instance id %q", s.Name, s.InstanceID)
		}
	}
	f.produce(poem...)
	f.countsUntil(poemCounts)
	app.end()
	// The next one would otherwise wait for the session time-out of the first.
	cfg.StateDir = t.TempDir()
	b, _ = f.wordCount()
	app = f.start(b, cfg)
	app.untilSpread(4)
	f.produce(poem...)
	twice := maps.Clone(poemCounts)
	for w := range twice {
		twice[w] *= 2
	}
	f.countsUntil(twice)
	app.end()
}
