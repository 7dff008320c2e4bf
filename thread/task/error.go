package task

import (
	"fmt"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/internal/topology"
)

// Error is a record that could not be processed: what failed, and where.
type Error struct {
	Kind topology.FailureKind
	// Operator is the operator's name.
	Operator string
	Task     taskid.ID
	// Topic, Partition and Offset are the coordinates of the input record.
	Topic     string
	Partition int32
	Offset    int64
	Err       error
	// Stack is the stack of a panic, nil for errors.
	Stack []byte
}

// Error returns everything but the stack.
func (e *Error) Error() string {
	return fmt.Sprintf("%s failed in operator %s of task %v at %s-%d offset %d: %v",
		e.Kind, e.Operator, e.Task, e.Topic, e.Partition, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// PanicError is the cause of an [Error] when user code panicked.
type PanicError struct{ Value any }

// Error returns the panic's value.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Decision is what becomes of a record that failed.
type Decision uint8

const (
	// Fail stops the task. It is the default.
	Fail Decision = iota
	// Skip leaves the record out and counts it.
	Skip
)

// Handler decides about a failed record. It runs on the task's goroutine; the record is valid during the call only.
type Handler func(*Error, *topology.Record) Decision

// decide asks the handler in charge. Failures of state stores are never asked about: skipping one would leave state and
// changelog different.
func (t *Task) decide(e *Error) Decision {
	handler := t.onProcess
	switch e.Kind {
	case topology.FailDecode, topology.FailTimestamp:
		handler = t.onDecode
	case topology.FailState:
		return Fail
	}
	if handler == nil {
		return Fail
	}
	return handler(e, t.current.peek())
}
