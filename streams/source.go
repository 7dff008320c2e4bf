package streams

import (
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/streams/serde"
)

// Stream reads a topic as a stream of records. A nil serde stands for the type's default.
//
// A record whose key or value cannot be decoded, or with a negative timestamp, goes to the decode error handler. A null
// key or value is not decoded; see package serde for what functions see of it.
func (b *Builder) Stream[K, V any](topic string, key serde.Serde[K], value serde.Serde[V], opts ...Option) Stream[K, V] {
	return b.StreamTopics([]string{topic}, key, value, opts...)
}

// StreamTopics reads several topics as one stream. Their records are interleaved by timestamp within a task.
func (b *Builder) StreamTopics[K, V any](topics []string, key serde.Serde[K], value serde.Serde[V], opts ...Option) Stream[K, V] {
	const operator = "Stream"
	key, value = need(b, operator, "key", key), need(b, operator, "value", value)
	n := b.node(operator, operatorOpts(opts).name, "KSTREAM-SOURCE-")
	n.Topics = topics
	return Stream[K, V]{b: b, node: addSource(b, n, key, value), key: key, value: value}
}

func addSource[K, V any](b *Builder, n topology.Node, key serde.Serde[K], value serde.Serde[V]) topology.NodeID {
	n.Kind = topology.Source
	n.Build = func(rt topology.Runtime, _ []any) (topology.Built, error) {
		out := new(outlet[K, V])
		s := &sourceNode[K, V]{
			rt: rt, name: n.Name, key: key, value: value, keys: nullOf[K](), values: nullOf[V](), out: out,
		}
		return topology.Built{Outlet: out, Entry: s}, nil
	}
	return b.graph.Add(n)
}

// sourceNode decodes raw records.
type sourceNode[K, V any] struct {
	rt     topology.Runtime
	name   string
	key    serde.Serde[K]
	value  serde.Serde[V]
	keys   nullness[K]
	values nullness[V]
	out    *outlet[K, V]
}

// Process implements [topology.Entry].
func (s *sourceNode[K, V]) Process(raw *topology.Record) error {
	r := record[K, V]{ts: raw.Timestamp, headers: raw.Headers, noKey: raw.Key == nil, tombstone: raw.Value == nil}
	var err error
	if !r.noKey {
		if r.key, err = s.key.Decode(raw.Key); err != nil {
			return s.rt.Fail(topology.FailDecode, s.name, decodeError("key", err))
		}
		r.noKey = s.keys.null(r.key)
	}
	if !r.tombstone {
		if r.value, err = s.value.Decode(raw.Value); err != nil {
			return s.rt.Fail(topology.FailDecode, s.name, decodeError("value", err))
		}
		r.tombstone = s.values.null(r.value)
	}
	return s.out.forward(r)
}
