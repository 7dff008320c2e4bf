package streams

import (
	"fmt"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/streams/serde"
)

// To writes the stream to a topic, which must exist. A nil serde stands for the one that the stream carries, or the
// type's default. Missing keys and tombstones are written as nulls.
//
// Records with a key are partitioned like those of Kafka's Java producer: by murmur2 of the key's bytes.
func (s Stream[K, V]) To(topic string, key serde.Serde[K], value serde.Serde[V], opts ...Option) {
	const operator = "To"
	key, value = need(s.b, operator, "key", key, s.key), need(s.b, operator, "value", value, s.value)
	n := s.b.node(operator, operatorOpts(opts).name, "KSTREAM-SINK-")
	n.Topics = []string{topic}
	addSink(s.b, s.node, n, key, value)
}

func addSink[K, V any](b *Builder, parent topology.NodeID, n topology.Node, key serde.Serde[K], value serde.Serde[V]) {
	n.Kind = topology.SinkKind
	attach(b, parent, n, func(at site, _ *outlet[K, V]) (receiver[K, V], error) {
		sink, err := at.rt.Sink(n.Topics[0], n.Internal)
		if err != nil {
			return nil, err
		}
		partitioned, _ := key.(serde.Partitioned)
		return &sinkNode[K, V]{site: at, key: key, value: value, partitioned: partitioned, sink: sink}, nil
	})
}

// sinkNode encodes into the task's outbox.
type sinkNode[K, V any] struct {
	site
	key         serde.Serde[K]
	value       serde.Serde[V]
	partitioned serde.Partitioned // nil when the whole key counts
	sink        topology.Sink
}

func (n *sinkNode[K, V]) receive(r record[K, V]) error {
	buf := n.sink.Buffer()
	var err error
	if !r.noKey {
		n.enter()
		if buf, err = n.key.Append(buf, r.key); err != nil {
			return n.rt.Fail(topology.FailEncode, n.name, fmt.Errorf("key: %w", err))
		}
	}
	cut := len(buf)
	if !r.tombstone {
		n.enter()
		if buf, err = n.value.Append(buf, r.value); err != nil {
			return n.rt.Fail(topology.FailEncode, n.name, fmt.Errorf("value: %w", err))
		}
	}
	e := topology.Emission{Buf: buf, Cut: cut, NoKey: r.noKey, Tombstone: r.tombstone, Timestamp: r.ts, Headers: r.headers}
	if n.partitioned != nil && !r.noKey {
		e.KeySuffix = cut - n.partitioned.PartitionKey(buf[:cut])
	}
	n.sink.Emit(e)
	return nil
}
