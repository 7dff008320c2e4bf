package thread

import (
	"fmt"
	"slices"
)

// State is where a stream thread is in its life, in Kafka Streams' words.
//
//	Created ─► Starting ─► PartitionsRevoked ◄─► PartitionsAssigned ─► Running
//	              │               ▲                                       │
//	              │               └───────────────────────────────────────┘
//	              └──────────► PendingShutdown ─► Dead
//
// PartitionsAssigned means that tasks are being opened or restored; tasks that stayed go on processing meanwhile.
// PendingShutdown can follow every state but Dead.
type State uint8

// The states of a thread.
const (
	Created State = iota
	Starting
	PartitionsRevoked
	PartitionsAssigned
	Running
	PendingShutdown
	Dead
)

var stateNames = [...]string{"CREATED", "STARTING", "PARTITIONS_REVOKED", "PARTITIONS_ASSIGNED", "RUNNING", "PENDING_SHUTDOWN", "DEAD"}

// String returns Kafka Streams' name of the state.
func (s State) String() string { return stateNames[s] }

// next lists the states that may follow each state.
var next = [...][]State{
	Created:            {Starting, PendingShutdown},
	Starting:           {PartitionsRevoked, PartitionsAssigned, PendingShutdown},
	PartitionsRevoked:  {PartitionsAssigned, PendingShutdown},
	PartitionsAssigned: {PartitionsRevoked, Running, PendingShutdown},
	Running:            {PartitionsRevoked, PartitionsAssigned, PendingShutdown},
	PendingShutdown:    {Dead},
	Dead:               {},
}

// lifecycle holds a thread's state. Only the thread's goroutine uses it.
type lifecycle struct {
	state  State
	notify func(from, to State) // told of every change
}

// become changes the state. A change to the present state is none; one that the table does not know is a bug.
func (l *lifecycle) become(to State) {
	from := l.state
	if from == to {
		return
	}
	if !slices.Contains(next[from], to) {
		panic(fmt.Sprintf("thread: impossible state change from %v to %v", from, to))
	}
	l.state = to
	if l.notify != nil {
		l.notify(from, to)
	}
}
