package task_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/thread/task"
)

var copyAll = script{process: func(k *kit, r *topology.Record) error {
	k.emit(r)
	return nil
}}

func TestSmallestHeadTimestampIsNext(t *testing.T) {
	tk := copyAll.start(t, nil)
	enqueue(t, tk, "b", rec(0, 5, "b5"), rec(1, 1, "b1"))
	enqueue(t, tk, "a", rec(0, 5, "a5"), rec(1, 9, "a9"))
	process(t, tk, 4)
	// The tie goes to the input declared first; b1 is behind b5 and stays there.
	if got, want := values(tk), []string{"a5", "b5", "b1", "a9"}; !slices.Equal(got, want) {
		t.Fatalf("order %v, want %v", got, want)
	}
	if got := tk.StreamTime(); got != 9 {
		t.Errorf("stream time %d, want 9", got)
	}
}

func TestProcessStopsAtTheLimit(t *testing.T) {
	tk := copyAll.start(t, nil)
	enqueue(t, tk, "a", rec(0, 1, "x"), rec(1, 2, "y"), rec(2, 3, "z"))
	if n, err := tk.Process(2); n != 2 || err != nil {
		t.Fatalf("Process(2) = %d, %v", n, err)
	}
	if got := tk.BufferedTotal(); got != 1 {
		t.Fatalf("%d records are left, want 1", got)
	}
}

func TestUnknownTopic(t *testing.T) {
	tk := copyAll.start(t, nil)
	if err := tk.Enqueue("c", []topology.Record{rec(0, 0, "")}); err == nil || !strings.Contains(err.Error(), `"c"`) {
		t.Fatalf("got %v, want an error that names the topic", err)
	}
}

// panicky panics at the value "bad" after it has emitted a part of the result.
var panicky = script{process: func(k *kit, r *topology.Record) error {
	k.emit(r)
	if string(r.Value) == "bad" {
		panic("boom")
	}
	return nil
}}

func TestPanicBecomesAnErrorWithCoordinates(t *testing.T) {
	tk := panicky.start(t, nil)
	enqueue(t, tk, "b", rec(40, 1, "good"), rec(42, 2, "bad"), rec(43, 3, "good"))
	n, err := tk.Process(10)
	failure, ok := errors.AsType[*task.Error](err)
	if n != 1 || !ok {
		t.Fatalf("Process = %d, %v, want one record and a *task.Error", n, err)
	}
	if failure.Kind != topology.FailProcess || failure.Operator != "worker" || failure.Topic != "b" ||
		failure.Partition != 3 || failure.Offset != 42 || failure.Task != tk.ID() {
		t.Errorf("wrong coordinates: %+v", failure)
	}
	if !bytes.Contains(failure.Stack, []byte("process_test.go")) {
		t.Errorf("the stack does not show where it happened:\n%s", failure.Stack)
	}
	if !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), "offset 42") {
		t.Errorf("the text lacks cause or place: %v", err)
	}
	if got := tk.Buffered(1); got != 2 {
		t.Errorf("%d records are buffered, want the failed one and the next", got)
	}
}

func TestSkippedPanicGoesOnWithTheNextRecord(t *testing.T) {
	asked := 0
	tk := panicky.start(t, func(c *task.Config) {
		c.OnProcessError = func(e *task.Error, r *topology.Record) task.Decision {
			asked++
			if string(r.Value) != "bad" || e.Offset != 1 {
				t.Errorf("asked about %q at %d", r.Value, e.Offset)
			}
			return task.Skip
		}
	})
	enqueue(t, tk, "a", rec(0, 1, "x"), rec(1, 2, "bad"), rec(2, 3, "y"))
	process(t, tk, 3)
	if asked != 1 || tk.Stats().Drops[topology.DropProcess] != 1 || tk.Stats().Dropped() != 1 {
		t.Errorf("asked %d times, drops %v", asked, tk.Stats().Drops)
	}
	if got := tk.Positions(); len(got) != 1 || got[0].Next != 3 {
		t.Errorf("positions %+v, want offset 3", got)
	}
}

func TestReportedFailureIsSkippedWhereItHappens(t *testing.T) {
	cause := errors.New("bad luck")
	s := script{process: func(k *kit, r *topology.Record) error {
		if err := k.Fail(topology.FailProcess, "worker", cause); err != nil {
			return err
		}
		k.emit(r) // a sibling
		return nil
	}}
	tk := s.start(t, func(c *task.Config) {
		c.OnProcessError = func(*task.Error, *topology.Record) task.Decision { return task.Skip }
	})
	enqueue(t, tk, "a", rec(0, 1, "x"))
	process(t, tk, 1)
	if len(values(tk)) != 1 || tk.Stats().Drops[topology.DropProcess] != 1 {
		t.Errorf("outbox %v, drops %v", values(tk), tk.Stats().Drops)
	}

	tk = s.start(t, nil)
	enqueue(t, tk, "a", rec(0, 1, "x"))
	if _, err := tk.Process(1); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
}

func TestStateFailureIsNeverSkipped(t *testing.T) {
	s := script{process: func(k *kit, r *topology.Record) error {
		return k.Fail(topology.FailState, "worker", errors.New("disk"))
	}}
	tk := s.start(t, func(c *task.Config) {
		c.OnProcessError = func(*task.Error, *topology.Record) task.Decision { return task.Skip }
	})
	enqueue(t, tk, "a", rec(0, 1, "x"))
	if _, err := tk.Process(1); err == nil {
		t.Fatal("a failed store was skipped")
	}
}

func TestNegativeTimestamp(t *testing.T) {
	tk := copyAll.start(t, nil)
	enqueue(t, tk, "a", rec(5, -1, "x"))
	_, err := tk.Process(1)
	if failure, ok := errors.AsType[*task.Error](err); !ok || failure.Kind != topology.FailTimestamp || failure.Offset != 5 {
		t.Fatalf("got %v, want a timestamp failure at offset 5", err)
	}

	tk = copyAll.start(t, func(c *task.Config) {
		c.OnDecodeError = func(*task.Error, *topology.Record) task.Decision { return task.Skip }
	})
	enqueue(t, tk, "a", rec(5, -1, "x"), rec(6, 1, "y"))
	process(t, tk, 2)
	if got := values(tk); !slices.Equal(got, []string{"y"}) {
		t.Errorf("outbox %v, want y only", got)
	}
	if tk.Stats().Drops[topology.DropTimestamp] != 1 || tk.StreamTime() != 1 {
		t.Errorf("drops %v, stream time %d", tk.Stats().Drops, tk.StreamTime())
	}
}

func TestMissingStateIsAnError(t *testing.T) {
	s := script{store: true}
	plan := s.plan(t)
	if _, err := task.New(task.Config{Sub: &plan.Subtopologies[0]}); err == nil {
		t.Fatal("a task with stores was built without state")
	}
}
