package statestore

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by snapshots and views whose engine was closed: the task moved or stopped. Ask again where the
// task is now.
var ErrClosed = errors.New("state is closed: the task moved or stopped")

// StoreError is a failure of an engine: what failed, in which directory, why, and what to do about it.
type StoreError struct {
	Op   string // what was being done: "open", "apply", "flush", "read", "close"
	Dir  string // the engine's directory, "" in memory
	Err  error  // the cause
	Hint string // what to do
	// Stalled says that the engine cannot write now but loses nothing (a full disk): the same call may succeed later.
	Stalled bool
	// Corrupt says that the local copy is damaged: move it aside with [RenameAside] and restore.
	Corrupt bool
}

func (e *StoreError) Error() string {
	where := ""
	if e.Dir != "" {
		where = " in " + e.Dir
	}
	return fmt.Sprintf("state: %s%s: %v (%s)", e.Op, where, e.Err, e.Hint)
}

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// LockedError says that somebody else uses a directory.
type LockedError struct {
	Path   string
	Holder string // what is known about the holder, "" if nothing
	Err    error  // the cause, from the operating system
}

func (e *LockedError) Error() string {
	holder := "another process, or another part of this one"
	if e.Holder != "" {
		holder = e.Holder
	}
	return fmt.Sprintf("%s is in use by %s: stop that first, or give this one a state directory of its own (%v)", e.Path, holder, e.Err)
}

// Unwrap returns the cause.
func (e *LockedError) Unwrap() error { return e.Err }
