package streams

import (
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/thread/task"
)

// The functions in this file exist for package streamstest, which drives tasks itself and wants handlers, errors and views to
// be those of a running application.

// HandlerForTask adapts a handler to the tasks' form.
func HandlerForTask(h Handler) task.Handler { return h.forTask() }

// ErrorFromTask gives a task's error the form that [App.Run] would return; nil stays nil.
func ErrorFromTask(err error) error {
	if err == nil {
		return nil
	}
	return fromThread("", err)
}

// ViewOfState returns a view of a table over the state of its only task.
func ViewOfState[K, V any](ref TableRef[K, V], state *statestore.State) *View[K, V] {
	return &View[K, V]{local: onlyState(ref.store, state), key: ref.key, value: ref.value}
}

// ViewWindowsOfState is [ViewOfState] for a windowed table.
func ViewWindowsOfState[K, V any](ref WindowRef[K, V], state *statestore.State) *WindowView[K, V] {
	return &WindowView[K, V]{local: onlyState(ref.store, state), key: ref.key, value: ref.value, size: ref.size}
}

func onlyState(name string, state *statestore.State) localStore {
	states := map[int32]*statestore.State{0: state}
	return localStore{name: name, tasks: 1, states: func() (map[int32]*statestore.State, error) { return states, nil }}
}
