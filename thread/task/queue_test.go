package task

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace-io/millrace/internal/topology"
)

// TestQueueAgainstModel runs random pushes and pops against a slice.
func TestQueueAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var model []int64
		next := int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "push") {
				recs := make([]topology.Record, rapid.IntRange(1, 90).Draw(t, "count"))
				for i := range recs {
					recs[i].Offset = next
					model = append(model, next)
					next++
				}
				q.push(recs)
			} else {
				for range min(len(model), rapid.IntRange(1, 120).Draw(t, "pops")) {
					if got := q.peek().Offset; got != model[0] {
						t.Fatalf("head is %d, want %d", got, model[0])
					}
					q.pop()
					model = model[1:]
				}
			}
			if q.len() != len(model) {
				t.Fatalf("length %d, want %d", q.len(), len(model))
			}
		}
	})
}

// TestEmptyQueueHoldsNoReferences: a fetch buffer must not stay in memory because of records long processed.
func TestEmptyQueueHoldsNoReferences(t *testing.T) {
	var q queue
	recs := make([]topology.Record, 100)
	for i := range recs {
		recs[i].Value = []byte("v")
	}
	for range 3 {
		q.push(recs[:70])
		for range 30 {
			q.pop()
		}
		q.push(recs)
		for q.len() > 0 {
			q.pop()
		}
	}
	for i, r := range q.ring {
		if r.Value != nil {
			t.Fatalf("slot %d of the empty queue holds a record", i)
		}
	}
}
