package task

import (
	"fmt"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/statestore"
)

// runtime is the task as its operators see it.
type runtime Task

func (r *runtime) KeyValue(store string) (statestore.KeyValueStore, error) {
	if r.state == nil {
		return nil, fmt.Errorf("no store %q", store)
	}
	return r.state.KeyValue(store)
}

func (r *runtime) Window(store string) (statestore.WindowStore, error) {
	if r.state == nil {
		return nil, fmt.Errorf("no store %q", store)
	}
	return r.state.Window(store)
}

func (r *runtime) Sink(topic string, internal bool) (topology.Sink, error) {
	i, ok := r.sub.SinkIndex(topic, internal)
	if !ok {
		return nil, fmt.Errorf("the sub-topology does not write topic %q", topic)
	}
	return &sink{task: (*Task)(r), topic: int32(i)}, nil
}

func (r *runtime) Clock(store string) *int64 { return r.clocks.add(store) }

func (r *runtime) Cursor() *topology.Cursor { return &r.cursor }

func (r *runtime) Drop(reason topology.DropReason) { r.stats.Drops[reason]++ }

func (r *runtime) Fail(kind topology.FailureKind, operator string, cause error) error {
	t := (*Task)(r)
	e := t.failure(kind, operator, cause)
	if t.decide(e) != Skip {
		return e
	}
	r.stats.Drops[dropped(kind)]++
	return nil
}

func dropped(kind topology.FailureKind) topology.DropReason {
	switch kind {
	case topology.FailDecode:
		return topology.DropDecode
	case topology.FailTimestamp:
		return topology.DropTimestamp
	default:
		return topology.DropProcess
	}
}
