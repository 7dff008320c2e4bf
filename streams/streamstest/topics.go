package streamstest

import (
	"errors"
	"fmt"

	"github.com/millrace-io/millrace/streams/serde"
)

// ErrNoRecord is what [Output.Read] returns when all records have been read.
var ErrNoRecord = errors.New("no record to read")

// Input is a typed source topic.
type Input[K, V any] struct {
	d     *Driver
	topic string
	key   serde.Serde[K]
	value serde.Serde[V]
}

// Input returns a typed way into a source topic. That the topic is one is checked by Pipe.
func (d *Driver) Input[K, V any](topic string, key serde.Serde[K], value serde.Serde[V]) *Input[K, V] {
	return &Input[K, V]{d, topic, key, value}
}

// Pipe processes a record to its end; see [Driver.PipeRaw] for errors.
func (in *Input[K, V]) Pipe(key K, value V, opts ...PipeOption) error {
	r := newRecord[K, V](in.d.now, opts)
	r.Key, r.Value = key, value
	return in.PipeRecord(r)
}

// PipeValue is [Input.Pipe] with a null key.
func (in *Input[K, V]) PipeValue(value V, opts ...PipeOption) error {
	r := newRecord[K, V](in.d.now, opts)
	r.Value, r.NoKey = value, true
	return in.PipeRecord(r)
}

// PipeTombstone is [Input.Pipe] with a null value.
func (in *Input[K, V]) PipeTombstone(key K, opts ...PipeOption) error {
	r := newRecord[K, V](in.d.now, opts)
	r.Key, r.Tombstone = key, true
	return in.PipeRecord(r)
}

// PipeRecord is [Input.Pipe] for a whole record; its timestamp is taken as it is.
func (in *Input[K, V]) PipeRecord(r Record[K, V]) error {
	raw := Raw{Timestamp: r.Timestamp, Headers: r.Headers}
	var err error
	if raw.Key, raw.NoKey, err = encode(in.key, r.Key, r.NoKey); err != nil {
		return fmt.Errorf("encode the key for topic %q: %w", in.topic, err)
	}
	if raw.Value, raw.Tombstone, err = encode(in.value, r.Value, r.Tombstone); err != nil {
		return fmt.Errorf("encode the value for topic %q: %w", in.topic, err)
	}
	return in.d.PipeRaw(in.topic, raw)
}

func encode[T any](s serde.Serde[T], v T, null bool) ([]byte, bool, error) {
	if null || isNull(v) {
		return nil, true, nil
	}
	data, err := s.Append([]byte{}, v)
	return data, false, err
}

// Output is a typed reader of a topic, in the order in which it was written.
type Output[K, V any] struct {
	d     *Driver
	topic string
	key   serde.Serde[K]
	value serde.Serde[V]
	read  int
}

// Output returns a typed reader of a topic from its beginning. It may be any topic that the topology writes.
func (d *Driver) Output[K, V any](topic string, key serde.Serde[K], value serde.Serde[V]) *Output[K, V] {
	return &Output[K, V]{d: d, topic: topic, key: key, value: value}
}

// Len is the number of records that have not been read.
func (out *Output[K, V]) Len() int { return len(out.d.topics[out.topic]) - out.read }

// Read returns the next record, or [ErrNoRecord]. A record that cannot be decoded is passed over by the call that reports it.
func (out *Output[K, V]) Read() (Record[K, V], error) {
	if out.Len() == 0 {
		return Record[K, V]{}, fmt.Errorf("topic %q: %w", out.topic, ErrNoRecord)
	}
	raw := out.d.topics[out.topic][out.read]
	out.read++
	r := Record[K, V]{NoKey: raw.NoKey, Tombstone: raw.Tombstone, Timestamp: raw.Timestamp, Headers: raw.Headers}
	var err error
	if !raw.NoKey {
		if r.Key, err = out.key.Decode(raw.Key); err != nil {
			return r, fmt.Errorf("topic %q, record %d: decode the key: %w", out.topic, out.read-1, err)
		}
	}
	if !raw.Tombstone {
		if r.Value, err = out.value.Decode(raw.Value); err != nil {
			return r, fmt.Errorf("topic %q, record %d: decode the value: %w", out.topic, out.read-1, err)
		}
	}
	return r, nil
}

// ReadAll returns the records that have not been read, none if there are none.
func (out *Output[K, V]) ReadAll() ([]Record[K, V], error) {
	var all []Record[K, V]
	for out.Len() > 0 {
		r, err := out.Read()
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}
