package streams

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/classic"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/thread"
	"github.com/millrace-io/millrace/thread/task"
)

// Kind says what went wrong, so that a program can decide without reading the text.
type Kind uint8

// The kinds of [Error].
const (
	KindOther     Kind = iota // anything else; see Err
	KindConfig                // the configuration or the topology is not valid
	KindBroker                // the brokers did not answer, or refused
	KindTopic                 // a topic is missing, or has the wrong number of partitions
	KindState                 // local state cannot be used
	KindDecode                // a record could not be decoded
	KindTimestamp             // a record has a negative timestamp
	KindProcess               // a user function returned an error or panicked
	KindEncode                // a result could not be encoded
	KindProduce               // the brokers refused a record
	KindFenced                // another process has this one's instance id
	KindStuck                 // a thread made no progress for Config.ProgressTimeout, or did not end within Config.CloseTimeout
)

var kindNames = [...]string{
	KindOther: "other", KindConfig: "config", KindBroker: "broker", KindTopic: "topic", KindState: "state", KindDecode: "decode",
	KindTimestamp: "timestamp", KindProcess: "process", KindEncode: "encode", KindProduce: "produce", KindFenced: "fenced", KindStuck: "stuck",
}

// String returns the kind as it stands in logs.
func (k Kind) String() string { return kindNames[k] }

// Error is what [App.Run] returns when the application failed, and what handlers are asked about. Fields that do not apply are
// zero; Partition and Offset are -1 then.
type Error struct {
	Kind      Kind
	Thread    string // the stream thread
	Operator  string
	Task      string // <sub-topology>_<partition>
	Topic     string
	Partition int32
	Offset    int64
	Err       error
	Stack     []byte // of a panic in a user function
}

// Error says what failed, where, and why. The stack of a panic is left out.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "streams: %s", e.Kind)
	for _, at := range []struct{ name, value string }{
		{"thread", e.Thread}, {"operator", e.Operator}, {"task", e.Task}, {"topic", e.Topic},
	} {
		if at.value != "" {
			fmt.Fprintf(&b, " %s=%s", at.name, at.value)
		}
	}
	if e.Partition >= 0 && e.Topic != "" {
		fmt.Fprintf(&b, " partition=%d", e.Partition)
	}
	if e.Offset >= 0 && e.Topic != "" {
		fmt.Fprintf(&b, " offset=%d", e.Offset)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

var (
	// ErrNotRunning says that the application does not run, so it has no state to ask.
	ErrNotRunning = errors.New("the application is not running")
	// ErrUnknownStore says that no store of that name is in the topology.
	ErrUnknownStore = errors.New("no such store in the topology")
	// ErrNotHere says that the key's, or the store's, tasks are not on this process now: ask the one that [App.Metadata]
	// names.
	ErrNotHere = errors.New("the store's tasks are not on this process")
)

// Decision is what becomes of a record that failed.
type Decision uint8

const (
	// Fail stops the application. It is the default.
	Fail Decision = iota
	// Skip leaves the record out. It is counted in the metric millrace_dropped_records_total under its reason.
	Skip
)

// Header is a record header.
type Header = topology.Header

// RawRecord is an input record as it came from its topic. It is valid during the call only. A nil Key or Value is Kafka's
// null.
type RawRecord struct {
	Key, Value []byte
	Headers    []Header
	Timestamp  time.Time
}

// Handler decides about a record that failed. It runs on a stream thread, several at a time, and must not block for long.
type Handler func(*Error, RawRecord) Decision

// forTask adapts the handler to the tasks' form.
func (h Handler) forTask() task.Handler {
	if h == nil {
		return nil
	}
	return func(e *task.Error, r *topology.Record) task.Decision {
		if h(fromTask(e), RawRecord{Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: time.UnixMilli(r.Timestamp)}) == Skip {
			return task.Skip
		}
		return task.Fail
	}
}

func fromTask(e *task.Error) *Error {
	kinds := map[topology.FailureKind]Kind{
		topology.FailDecode: KindDecode, topology.FailTimestamp: KindTimestamp, topology.FailProcess: KindProcess,
		topology.FailEncode: KindEncode, topology.FailState: KindState,
	}
	return &Error{
		Kind: kinds[e.Kind], Operator: e.Operator, Task: e.Task.String(), Topic: e.Topic, Partition: e.Partition,
		Offset: e.Offset, Err: e.Err, Stack: e.Stack,
	}
}

// failure makes an error without coordinates.
func failure(kind Kind, err error) *Error {
	return &Error{Kind: kind, Partition: -1, Offset: -1, Err: err}
}

// fromThread gives what ended a stream thread its kind and coordinates.
func fromThread(name string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := failure(KindOther, err)
	if te, ok := errors.AsType[*task.Error](err); ok {
		e = fromTask(te)
	} else if pe, ok := errors.AsType[*thread.ProduceError](err); ok {
		e = &Error{Kind: KindProduce, Topic: pe.Topic, Partition: pe.Partition, Offset: -1, Err: err}
		if pe.Task != (taskid.ID{}) {
			e.Task = pe.Task.String()
		}
	} else if fe, ok := errors.AsType[*thread.FetchError](err); ok {
		e = &Error{Kind: pick(fe.Missing, KindTopic, KindBroker), Task: fe.Task.String(), Topic: fe.Topic, Partition: fe.Partition, Offset: fe.Offset, Err: err}
	} else if _, ok := errors.AsType[*membership.FencedError](err); ok {
		e.Kind = KindFenced
	} else if errors.Is(err, thread.ErrExited) {
		e.Kind = KindProcess
	} else {
		e.Kind = groupKind(err)
	}
	e.Thread = name
	return e
}

// groupKind is the kind of an error that comes from state or from the brokers.
func groupKind(err error) Kind {
	if stateError(err) {
		return KindState
	}
	if _, ok := errors.AsType[*membership.SessionTimeoutError](err); ok {
		return KindConfig
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID) {
		return KindTopic
	}
	if brokerError(err) {
		return KindBroker
	}
	return KindOther
}

func brokerError(err error) bool {
	if _, ok := errors.AsType[*membership.UnsupportedError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*membership.RefusedError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	_, ok := errors.AsType[*classic.UnreachableError](err)
	return ok
}

func stateError(err error) bool {
	if _, ok := errors.AsType[*statestore.StoreError](err); ok {
		return true
	}
	_, ok := errors.AsType[*statestore.IdentityError](err)
	return ok
}
