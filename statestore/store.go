package statestore

import (
	"fmt"
	"math"
)

// Kind is the shape of a store.
type Kind uint8

const (
	// KeyValue is a map from key to (value, timestamp).
	KeyValue Kind = iota
	// Window is a map from (key, window start) to (value, timestamp) whose old windows expire by stream time.
	Window
)

// String returns the name used in errors and descriptions.
func (k Kind) String() string {
	switch k {
	case KeyValue:
		return "key-value"
	case Window:
		return "window"
	default:
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
}

// Spec describes one store of a task.
type Spec struct {
	// Name is the store's name, unique in its topology.
	Name string
	Kind Kind
	// Logged says that the store has a changelog: only then [State.Changelog] emits its writes.
	Logged bool
	// WindowSize and Retention are milliseconds, for Window stores only. A window is visible and accepts writes while
	// its start is greater than the store's observed time minus Retention.
	WindowSize, Retention int64
}

// Validate reports what is wrong with the spec, naming the store, the field and its bound.
func (s Spec) Validate() error {
	switch {
	case s.Name == "":
		return fmt.Errorf("store without a name: every store needs one")
	case len(s.Name) > maxStoreName:
		return fmt.Errorf("store %.40q…: name has %d bytes, at most %d are allowed", s.Name, len(s.Name), maxStoreName)
	case s.Kind > Window:
		return fmt.Errorf("store %q: unknown %v", s.Name, s.Kind)
	case s.Kind == Window && s.WindowSize <= 0:
		return fmt.Errorf("store %q: window size is %d ms, must be positive", s.Name, s.WindowSize)
	case s.Kind == Window && s.Retention < s.WindowSize:
		return fmt.Errorf("store %q: retention of %d ms is shorter than the window size of %d ms", s.Name, s.Retention, s.WindowSize)
	}
	return nil
}

const (
	// maxStoreName is the longest store name: Kafka's limit for the topic named after it.
	maxStoreName = 249
	// maxStores is how many stores one task may have: their ids take two bytes, of which 0 is reserved.
	maxStores = math.MaxUint16 - 1
)

// KeyValueStore is a store of kind [KeyValue] as its task sees it. It belongs to the task's goroutine.
//
// Every value carries a timestamp of its own, in milliseconds, as in Kafka Streams' timestamped stores. A nil value
// is absence; an empty one is a value.
type KeyValueStore interface {
	// Get returns the value of key and its timestamp. The value is valid until the next call on any store of the
	// same State and must not be changed.
	Get(key []byte) (value []byte, ts int64, ok bool, err error)
	// Put sets the value of key; a nil value deletes it. Both slices are copied.
	Put(key, value []byte, ts int64) error
	// Range calls fn for the entries with from <= key <= to in ascending order of bytes, until fn returns false. A nil
	// bound is open. Uncommitted writes are seen. The slices are valid until fn returns or calls the store. fn may
	// read and write the store; whether Range shows what fn itself writes is not specified.
	Range(from, to []byte, fn func(key, value []byte, ts int64) bool) error
}

// WindowStore is a store of kind [Window] as its task sees it. It belongs to the task's goroutine.
//
// Window starts are milliseconds since the epoch and never negative.
type WindowStore interface {
	// Get returns the value of key in the window that begins at start. Expired windows are absent. The value is valid
	// until the next call on any store of the same State and must not be changed.
	Get(key []byte, start int64) (value []byte, ts int64, ok bool, err error)
	// Put sets the value of key in the window that begins at start; a nil value deletes it. Both slices are copied. It
	// advances the observed time first; a window that is expired then is dropped and counted in [Stats].
	Put(key []byte, start int64, value []byte, ts int64) error
	// Fetch calls fn for the live windows of key with fromStart <= start <= toStart in ascending order of start, until
	// fn returns false. The same rules as for [KeyValueStore.Range] hold.
	Fetch(key []byte, fromStart, toStart int64, fn func(start int64, value []byte, ts int64) bool) error
	// ObservedTime is the greatest window start that was put, -1 before the first.
	ObservedTime() int64
}

// Offset is a changelog position: everything of Store before Next has been applied.
type Offset struct {
	Store string
	Next  int64
}

// ChangelogRecord is one record of a store's changelog in Kafka Streams' bytes. A nil Value deletes.
type ChangelogRecord struct {
	Key, Value []byte
	Timestamp  int64
}
