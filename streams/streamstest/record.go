package streamstest

import (
	"bytes"
	"reflect"
	"slices"
	"time"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/streams"
)

// Header is a record header.
type Header = streams.Header

// Record is a record of a topic. For types with a null of their own (pointers, interfaces, []byte) nil is Kafka's null; for
// other types NoKey and Tombstone are, and the key or value is then ignored. Records that are read have them set for all
// types.
type Record[K, V any] struct {
	Key       K
	Value     V
	NoKey     bool // the key is null
	Tombstone bool // the value is null
	Timestamp time.Time
	Headers   []Header
}

// Raw is a record as its bytes.
type Raw = Record[[]byte, []byte]

// PipeOption adjusts one piped record.
type PipeOption func(*pipeOptions)

type pipeOptions struct {
	at      *time.Time
	headers []Header
}

// At gives the record a timestamp; Kafka keeps milliseconds.
func At(t time.Time) PipeOption { return func(o *pipeOptions) { o.at = &t } }

// AtMilli gives the record a timestamp in milliseconds since the epoch.
func AtMilli(ms int64) PipeOption { return At(time.UnixMilli(ms)) }

// WithHeader appends a header to the record.
func WithHeader(key string, value []byte) PipeOption {
	return func(o *pipeOptions) { o.headers = append(o.headers, Header{Key: key, Value: value}) }
}

// newRecord puts together what a Pipe function was given.
func newRecord[K, V any](now time.Time, opts []PipeOption) Record[K, V] {
	var all pipeOptions
	for _, o := range opts {
		o(&all)
	}
	if all.at == nil {
		all.at = &now
	}
	return Record[K, V]{Timestamp: *all.at, Headers: all.headers}
}

// isNull tells the nil of a type that has one.
func isNull[T any](v T) bool {
	switch value := reflect.ValueOf(&v).Elem(); value.Kind() {
	case reflect.Pointer, reflect.Interface:
		return value.IsNil()
	case reflect.Slice:
		return value.Type() == reflect.TypeFor[[]byte]() && value.IsNil()
	default:
		return false
	}
}

// source is the record as a task takes it.
func source(r Raw, offset int64) topology.Record {
	out := topology.Record{Headers: r.Headers, Timestamp: r.Timestamp.UnixMilli(), Offset: offset}
	if !r.NoKey {
		out.Key = r.Key
	}
	if !r.Tombstone {
		out.Value = r.Value
	}
	return out
}

// capture copies what a task wrote out of its arena.
func capture(key, value []byte, headers []Header, ts int64) Raw {
	r := Raw{
		Key: bytes.Clone(key), Value: bytes.Clone(value), NoKey: key == nil, Tombstone: value == nil,
		Timestamp: time.UnixMilli(ts).UTC(), Headers: slices.Clone(headers),
	}
	for i := range r.Headers {
		r.Headers[i].Value = bytes.Clone(r.Headers[i].Value)
	}
	return r
}
