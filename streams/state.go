package streams

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/millrace-io/millrace/thread"
)

// State is where an application is in its life, in Kafka Streams' words.
//
//	Created ─► Rebalancing ◄─► Running
//	   │            │             │
//	   │            └──────┬──────┴────────────┐
//	   │                   ▼                   ▼
//	   ├──────────► PendingShutdown       PendingError ◄── any
//	   │                   │                   │
//	   └───────────────────▼                   ▼
//	                  NotRunning             Error
type State uint8

// The states of an application.
const (
	// Created: Run has not been called.
	Created State = iota
	// Rebalancing: threads join, give up, open or restore tasks. Those that stay are processed.
	Rebalancing
	// Running: every thread runs everything it was assigned.
	Running
	// PendingShutdown: a graceful stop is under way.
	PendingShutdown
	// NotRunning: stopped. Final.
	NotRunning
	// PendingError: a thread failed and the others are being stopped.
	PendingError
	// Failed: stopped after a failure. Final. Kafka Streams calls it ERROR.
	Failed
)

var stateNames = [...]string{"CREATED", "REBALANCING", "RUNNING", "PENDING_SHUTDOWN", "NOT_RUNNING", "PENDING_ERROR", "ERROR"}

// String returns Kafka Streams' name of the state.
func (s State) String() string { return stateNames[s] }

// nextStates lists the states that may follow each state.
var nextStates = [...][]State{
	Created:         {Rebalancing, PendingShutdown, NotRunning, PendingError},
	Rebalancing:     {Running, PendingShutdown, PendingError},
	Running:         {Rebalancing, PendingShutdown, PendingError},
	PendingShutdown: {NotRunning, PendingError},
	NotRunning:      {},
	PendingError:    {Failed},
	Failed:          {},
}

// stateBox holds the state of an application. The supervisor writes it; any goroutine may read it.
type stateBox struct {
	now    atomic.Uint32
	listen func(from, to State)
}

func (b *stateBox) load() State { return State(b.now.Load()) }

// become changes the state and tells the listener. Staying is no change; a change that the table does not know is a bug.
func (b *stateBox) become(to State) {
	from := b.load()
	if from == to {
		return
	}
	if !slices.Contains(nextStates[from], to) {
		panic(fmt.Sprintf("streams: impossible state change from %v to %v", from, to))
	}
	b.now.Store(uint32(to))
	if b.listen != nil {
		b.listen(from, to)
	}
}

// ofThreads is the state that the states of all threads amount to.
func ofThreads(threads []*thread.Thread) State {
	for _, t := range threads {
		if t.Status().State != thread.Running {
			return Rebalancing
		}
	}
	return Running
}
