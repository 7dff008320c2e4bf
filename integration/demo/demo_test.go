package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/millrace-io/millrace/integration/proc"
)

func TestReplayCountsEveryWordOfEveryLine(t *testing.T) {
	const n = preloadLines + 10 // both kinds of lines
	total := uint64(0)
	for _, count := range replay(n) {
		total += count
	}
	if total != n*lineWords {
		t.Errorf("the replay of %d lines has %d words", n, total)
	}
	a, b := newInput(), newInput()
	b.line(3)
	if !bytes.Equal(a.line(preloadLines+5), b.line(preloadLines+5)) {
		t.Error("a line depends on what was asked for before")
	}
}

func TestSurplusIsCountedAndALossIsAnError(t *testing.T) {
	want := map[string]uint64{"a": 3, "b": 1}
	if s, err := surplusOf(map[string]uint64{"a": 5, "b": 2}, want); err != nil || s != 3 {
		t.Errorf("surplus %d, %v", s, err)
	}
	for _, got := range []map[string]uint64{{"a": 2, "b": 9}, {"a": 3}, {"a": 3, "b": 1, "c": 1}} {
		if _, err := surplusOf(got, want); err == nil {
			t.Errorf("%v passed for %v", got, want)
		}
	}
}

func TestStatefulPartitionsOfAWorker(t *testing.T) {
	g := proc.Group{Generation: 3, Tasks: map[string][]string{
		"wc-0-StreamThread-1-consumer": {"lines_0", "word-counts-repartition_2", "word-counts-repartition_0"},
		"wc-1-StreamThread-1-consumer": {"lines_1", "word-counts-repartition_1"},
	}}
	if p := stateful(g, &worker{clientID: "wc-0"}); !slices.Equal(p, []int{0, 2}) {
		t.Errorf("partitions with counts: %v", p)
	}
}

func TestUncommittedIsCountedInWords(t *testing.T) {
	committed, ends := kadm.OffsetResponses{}, kadm.ListedOffsets{}
	committed.Add(kadm.OffsetResponse{Offset: kadm.Offset{Topic: lines, Partition: 1, At: 90}})
	ends[lines] = map[int32]kadm.ListedOffset{1: {Offset: 100}}
	ends[repartition] = map[int32]kadm.ListedOffset{2: {Offset: 7}}
	if n := uncommittedOf("lines_1", committed, ends); n != 10*lineWords {
		t.Errorf("10 uncommitted lines are %d words", n)
	}
	if n := uncommittedOf("word-counts-repartition_2", committed, ends); n != 7 {
		t.Errorf("7 uncommitted words without any commit are %d", n)
	}
}

// awaitFlush must see every task written, not only one, and must not wait for those that the worker has no more.
func TestAwaitFlushWaitsForEveryTask(t *testing.T) {
	dir := t.TempDir()
	w := &worker{dir: dir}
	var err error
	if w.Process, err = proc.Start(dir, "sleeper", "/bin/sleep", nil, "60"); err != nil {
		t.Skipf("no /bin/sleep to stand for a process: %v", err)
	}
	t.Cleanup(w.Kill)
	after := time.Now().Add(-time.Minute)
	table := func(task string, at time.Time) {
		name := filepath.Join(dir, task, "000001.sst")
		os.MkdirAll(filepath.Dir(name), 0o755)
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	table("word-counts-repartition_0", time.Now())
	table("word-counts-repartition_1", after.Add(-time.Second))
	table("word-counts-repartition_2", after.Add(-time.Second)) // moved away
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.awaitFlush(ended, []int{0, 1}, after); err == nil {
		t.Error("one of two tasks was not flushed, and nobody waited")
	}
	table("word-counts-repartition_1", time.Now())
	if err := w.awaitFlush(t.Context(), []int{0, 1}, after); err != nil {
		t.Error(err)
	}
}
