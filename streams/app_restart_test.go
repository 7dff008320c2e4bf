package streams_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/streams"
)

// placement says which thread has which tasks in which generation.
func (r *running) placement() map[string]string {
	placed := map[string]string{}
	for _, s := range r.Threads() {
		placed[s.InstanceID] = fmt.Sprintf("generation %d: %v", s.Generation, s.Active)
	}
	return placed
}

// metric adds up a metric over all its labels.
func (r *running) metric(name string) float64 {
	r.t.Helper()
	families, err := r.Gatherer().Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		sum := 0.0
		for _, m := range family.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
		return sum
	}
	r.t.Fatalf("no metric %s", name)
	return 0
}

// Promise P1: static members that come back within the session time-out keep generation and tasks, and a clean stop leaves nothing
// to restore.
func TestStaticRestartKeepsGenerationAndTasks(t *testing.T) {
	guarantees(t, func(t *testing.T, g streams.Guarantee) {
		f := newFixture(t)
		cfg := f.config("wc-0")
		cfg.Guarantee = g
		b, _ := f.wordCount()
		app := f.start(b, cfg)
		f.produce(poem...)
		app.untilSpread(4)
		f.countsUntil(poemCounts)
		before := app.placement()
		app.end()

		b, _ = f.wordCount()
		app = f.start(b, cfg)
		app.untilSpread(4)
		f.produce(poem...)
		twice := maps.Clone(poemCounts)
		for w := range twice {
			twice[w] *= 2
		}
		f.countsUntil(twice)
		if after := app.placement(); !maps.Equal(before, after) {
			t.Errorf("before the restart %v, after it %v", before, after)
		}
		if n := app.metric("millrace_restored_records_total"); n != 0 {
			t.Errorf("%v records were restored after a clean stop, want none", n)
		}
		app.end()
	})
}

// State that is gone comes back from the changelog.
func TestLostStateIsRestored(t *testing.T) {
	guarantees(t, func(t *testing.T, g streams.Guarantee) {
		f := newFixture(t)
		cfg := f.config("wc-0")
		cfg.Guarantee = g
		b, _ := f.wordCount()
		app := f.start(b, cfg)
		f.produce(poem...)
		f.countsUntil(poemCounts)
		app.end()

		cfg.StateDir = t.TempDir()
		b, counts := f.wordCount()
		app = f.start(b, cfg)
		app.untilSpread(4)
		view, err := app.View(counts)
		if err != nil {
			t.Fatal(err)
		}
		rows, failed := view.All()
		got := maps.Collect(rows)
		if err := failed(); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, poemCounts) {
			t.Errorf("restored %v, want %v", got, poemCounts)
		}
		if n, ok, err := view.Get("the"); err != nil || !ok || n != 3 {
			t.Errorf("Get(the) = %d, %v, %v", n, ok, err)
		}
		if _, ok, err := view.Get("windmill"); err != nil || ok {
			t.Errorf("Get(windmill) = %v, %v", ok, err)
		}
		if n := app.metric("millrace_restored_records_total"); n < float64(len(poemCounts)) {
			t.Errorf("only %v records were restored", n)
		}
		app.end()
		if _, _, err := view.Get("the"); !errors.Is(err, streams.ErrNotRunning) {
			t.Errorf("Get after the stop: %v, want ErrNotRunning", err)
		}
	})
}

func TestViewOfUnknownStore(t *testing.T) {
	f := newFixture(t)
	b, counts := f.wordCount()
	cfg := f.config("wc-0")
	app, err := streams.New(b, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.View(counts); !errors.Is(err, streams.ErrNotRunning) {
		t.Errorf("View before Run: %v, want ErrNotRunning", err)
	}
	b, _ = f.wordCount()
	r := f.start(b, cfg)
	r.until(streams.Running)
	if _, err := r.View(streams.TableRef[string, int64]{}); !errors.Is(err, streams.ErrUnknownStore) {
		t.Errorf("View of a table that is not kept: %v, want ErrUnknownStore", err)
	}
	r.end()
}

// childEnv makes the test binary an instance of the word count that waits for its end by SIGKILL.
const childEnv = "MILLRACE_TEST_CHILD"

func TestMain(m *testing.M) {
	if run := os.Getenv(childEnv); run != "" {
		runChild(run)
		return
	}
	os.Exit(m.Run())
}

// runChild is the child's main, with the names of its run. It says every point of the commit protocol on stdout, so that the parent can aim.
func runChild(run string) {
	b, _ := namesOf(run).wordCount()
	cfg, err := streams.Config{Threads: 2, CommitInterval: 20 * time.Millisecond, HeartbeatInterval: 100 * time.Millisecond}.FromEnv()
	if err == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug}))
		var app *streams.App
		if app, err = streams.New(b, cfg); err == nil {
			err = app.Run(context.Background())
		}
	}
	fmt.Println("child ended:", err)
	os.Exit(1)
}

// killAt runs a child and kills it when it has passed a point for the nth time; at C6 it must have committed output, too.
func (f *fixture) killAt(stateDir, point string, nth int) {
	f.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+strings.TrimPrefix(f.app, "wordcount-"), "MILLRACE_APP_ID="+f.app, "MILLRACE_CLIENT_ID=wc-0",
		"MILLRACE_BROKERS="+strings.Join(f.brokers, ","), "MILLRACE_STATE_DIR="+stateDir, "MILLRACE_GUARANTEE=exactly_once_v2")
	watch := &pointWatch{want: "at=" + point, nth: nth, reached: make(chan struct{})}
	child.Stdout, child.Stderr = watch, watch
	before := f.committedEnd(f.counts)
	if err := child.Start(); err != nil {
		f.Fatal(err)
	}
	reached := true
	select {
	case <-watch.reached:
	case <-time.After(limit):
		reached = false
	}
	if point == "C6" { // so that the next child has something to restore
		f.eventually("committed output", func() bool { return f.committedEnd(f.counts) > before })
	}
	if err := child.Process.Kill(); err != nil {
		f.Error(err)
	}
	child.Wait() // it was killed: that is no news
	if !reached {
		f.Errorf("the child did not come to point %s %d times; its log ends with\n%s", point, nth, strings.Join(watch.last, "\n"))
	}
}

// committedEnd is the sum of the offsets up to which a topic is committed.
func (f *fixture) committedEnd(topic string) (sum int64) {
	f.Helper()
	ends, err := f.admin().ListCommittedOffsets(f.Context(), topic)
	if err != nil {
		f.Fatal(err)
	}
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	return sum
}

// pointWatch looks for a point in a child's log.
type pointWatch struct {
	want    string
	nth     int
	reached chan struct{}
	text    string
	last    []string // lines
}

func (w *pointWatch) Write(p []byte) (int, error) {
	w.text += string(p)
	for {
		line, rest, whole := strings.Cut(w.text, "\n")
		if !whole {
			return len(p), nil
		}
		w.text = rest
		w.last = append(w.last, line)
		w.last = w.last[max(0, len(w.last)-40):]
		if strings.Contains(line, w.want+" ") || strings.HasSuffix(line, w.want) {
			if w.nth--; w.nth == 0 {
				close(w.reached)
			}
		}
	}
}

// Promise P2: under exactly-once a process may die at any point; results are those of a run that did not die. The points are named in
// the commit protocol.
func TestKilledAtAnyPointUnderExactlyOnce(t *testing.T) {
	f := newFixture(t)
	stateDir := t.TempDir()
	want := map[string]int64{}
	feeding, stopFeeding := context.WithCancel(t.Context())
	fed := make(chan int)
	go func() { // a steady feed, so that every point is reached
		n := 0
		for ; feeding.Err() == nil; n++ {
			word := "w" + strconv.Itoa(n%37)
			record := &kgo.Record{Topic: f.lines, Key: []byte(word), Value: []byte(word + " all")}
			if err := f.client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
				t.Error(err)
				break
			}
		}
		fed <- n
	}()
	for _, kill := range []struct {
		point string
		nth   int
	}{{"txn", 1}, {"C0", 2}, {"C1", 3}, {"C2", 1}, {"C4", 2}, {"C5", 3}, {"C6", 10}, {"restore", 1}, {"C4", 4}, {"C5", 4}} {
		f.killAt(stateDir, kill.point, kill.nth)
	}
	stopFeeding()
	for i := range <-fed {
		want["w"+strconv.Itoa(i%37)]++
		want["all"]++
	}
	b, counts := f.wordCount()
	cfg := f.config("wc-0")
	cfg.StateDir, cfg.Guarantee = stateDir, streams.ExactlyOnce
	app := f.start(b, cfg)
	f.countsUntil(want)
	app.untilSpread(4)
	view, err := app.View(counts)
	if err != nil {
		t.Fatal(err)
	}
	f.eventually("the state to equal the replay", func() bool { // it is committed a moment after the output
		rows, failed := view.All()
		got := maps.Collect(rows)
		if err := failed(); err != nil {
			t.Fatal(err)
		}
		return maps.Equal(got, want)
	})
	app.end()
}
