package task

import (
	"fmt"
	"runtime/debug"

	"github.com/millrace-io/millrace/internal/topology"
)

// Process runs up to limit records and returns how many it took. An error leaves the failed record at the head of its
// queue; the owner must then abort, because state and outbox may hold a part of its effects.
func (t *Task) Process(limit int) (n int, err error) {
	for n < limit {
		took, err := t.run(limit - n)
		n += took
		if err != nil {
			return n, err
		}
		if t.pick() == nil {
			break
		}
	}
	return n, nil
}

// run processes until the limit, an error or a skipped panic: recovering is paid once a call, not once a record.
func (t *Task) run(limit int) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, err = t.recovered(n, v, debug.Stack())
		}
	}()
	for n < limit {
		in := t.pick()
		if in == nil {
			break
		}
		if err := t.one(in); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// pick returns the input whose head has the smallest timestamp, the first one on a tie, nil when all are empty.
func (t *Task) pick() *input {
	if len(t.inputs) == 1 {
		if in := &t.inputs[0]; in.len() > 0 {
			return in
		}
		return nil
	}
	var first *input
	for i := range t.inputs {
		in := &t.inputs[i]
		if in.len() > 0 && (first == nil || in.peek().Timestamp < first.peek().Timestamp) {
			first = in
		}
	}
	return first
}

// one processes the head of an input. A negative timestamp never reaches an operator: windows and stores could not
// hold it.
func (t *Task) one(in *input) error {
	r := in.peek()
	t.current = in
	if r.Timestamp < 0 {
		err := (*runtime)(t).Fail(topology.FailTimestamp, "source", fmt.Errorf("timestamp %d is negative", r.Timestamp))
		if err != nil {
			return err
		}
		t.take(in, r)
		return nil
	}
	if r.Timestamp > t.times.stream {
		t.times.stream = r.Timestamp
	}
	for _, entry := range in.entries {
		if err := entry.Process(r); err != nil {
			return err
		}
	}
	t.take(in, r)
	return nil
}

// take counts the record as processed.
func (t *Task) take(in *input, r *topology.Record) {
	in.next, in.epoch, in.moved = r.Offset+1, r.LeaderEpoch, true
	in.pop()
	t.stats.Processed++
}

// recovered turns a panic into an error, or skips the record.
func (t *Task) recovered(n int, v any, stack []byte) (int, error) {
	e := t.failure(topology.FailProcess, t.sub.NodeName(t.cursor.Node), &PanicError{Value: v})
	e.Stack = stack
	if t.decide(e) != Skip {
		return n, e
	}
	t.stats.Drops[topology.DropProcess]++
	t.take(t.current, t.current.peek())
	return n + 1, nil
}

// failure gives an error its coordinates.
func (t *Task) failure(kind topology.FailureKind, operator string, cause error) *Error {
	return &Error{
		Kind: kind, Operator: operator, Task: t.id,
		Topic: t.current.topic, Partition: t.id.Partition, Offset: t.current.peek().Offset, Err: cause,
	}
}
