package topology

import (
	"fmt"

	"github.com/millrace-io/millrace/statestore"
)

// Runtime is what a task offers to the operators that are built for it. It belongs to the task's goroutine. Only the
// building of a node and the cold paths (drops, failures) call it; the record path holds what it needs.
type Runtime interface {
	// KeyValue and Window return a store of the task.
	KeyValue(store string) (statestore.KeyValueStore, error)
	Window(store string) (statestore.WindowStore, error)
	// Sink returns the way to a topic that the sub-topology writes; internal topics go by their name without the
	// application's prefix.
	Sink(topic string, internal bool) (Sink, error)
	// Clock returns the stream time of the operator that owns a store, -1 in the beginning. The task commits it together
	// with the input offsets and takes it back on an abort, so that what is late does not depend on restarts. It goes by
	// the store because operator names may be generated, and then change with any edit.
	Clock(store string) *int64
	// Cursor is where operators note that they are about to run user code.
	Cursor() *Cursor
	// Drop counts a record, or a part of one, that an operator leaves out.
	Drop(reason DropReason)
	// Fail reports that an operator cannot process the current record. It returns nil when the record is to be left out
	// of the operator and everything after it (it is counted then), and otherwise the error to return to the caller.
	Fail(kind FailureKind, operator string, err error) error
}

// Cursor tells which operator runs. A panic in user code is attributed to it.
type Cursor struct {
	Node NodeID
}

// Entry takes the raw records of one source node.
type Entry interface {
	// Process runs one record through everything behind the source. The record and its bytes are borrowed.
	Process(r *Record) error
}

// Sink takes the encoded records of one sink node.
//
// The encoder appends key and value to Buffer and hands the result back to Emit:
//
//	buf := sink.Buffer()
//	buf, err = key.Append(buf, k)
//	cut := len(buf)
//	buf, err = value.Append(buf, v)
//	sink.Emit(buf, cut, ...)
type Sink interface {
	// Buffer returns an empty buffer with room. It is valid until the next call of Emit on any sink of the task.
	Buffer() []byte
	// Emit adds one record to the task's outbox. The headers are copied.
	Emit(o Emission)
}

// Emission is an encoded record: the key is Buf[:Cut], the value Buf[Cut:].
type Emission struct {
	Buf []byte
	Cut int
	// NoKey and Tombstone say that the part is null.
	NoKey, Tombstone bool
	// KeySuffix is how many bytes at the end of the key the default partitioner leaves out.
	KeySuffix int
	Timestamp int64
	Headers   []Header
}

// DropReason says why an operator left out a record. Every drop is counted under its reason.
type DropReason uint8

const (
	// DropNullKey: the operator groups or stores by key and the record has none.
	DropNullKey DropReason = iota
	// DropNullValue: the operator needs a value and the record is a tombstone.
	DropNullValue
	// DropRepartitionNullKey: the record has no key to repartition by. Kafka Streams does not count these.
	DropRepartitionNullKey
	// DropLate: a window of the record was closed; counted once for each window.
	DropLate
	// DropDecode: the bytes could not be decoded and the handler said skip.
	DropDecode
	// DropTimestamp: the timestamp is negative and the handler said skip.
	DropTimestamp
	// DropProcess: user code or encoding failed and the handler said skip.
	DropProcess

	// DropReasons is the number of reasons.
	DropReasons
)

var dropNames = [DropReasons]string{
	DropNullKey: "null-key", DropNullValue: "null-value", DropRepartitionNullKey: "repartition-null-key",
	DropLate: "late", DropDecode: "decode-error", DropTimestamp: "negative-timestamp", DropProcess: "process-error",
}

// String returns the reason as it stands in metrics.
func (r DropReason) String() string {
	if r >= DropReasons {
		return fmt.Sprintf("reason(%d)", uint8(r))
	}
	return dropNames[r]
}

// FailureKind says which step of a record failed.
type FailureKind uint8

const (
	// FailDecode: the bytes of the input record are no key or value of the declared types.
	FailDecode FailureKind = iota
	// FailTimestamp: the input record has a negative timestamp.
	FailTimestamp
	// FailProcess: a user function returned an error or panicked.
	FailProcess
	// FailEncode: a result could not be encoded.
	FailEncode
	// FailState: a state store failed. It cannot be skipped.
	FailState
)

var failureNames = [...]string{
	FailDecode: "decode", FailTimestamp: "timestamp", FailProcess: "process", FailEncode: "encode", FailState: "state",
}

// String returns the kind as it stands in errors.
func (k FailureKind) String() string {
	if int(k) >= len(failureNames) {
		return fmt.Sprintf("failure(%d)", uint8(k))
	}
	return failureNames[k]
}
