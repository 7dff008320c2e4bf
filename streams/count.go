package streams

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/streams/serde"
)

const (
	aggregatePrefix = "KSTREAM-AGGREGATE-"
	reducePrefix    = "KSTREAM-REDUCE-"
)

// Count counts the records of each key in the store of the given name.
func (g GroupedStream[K, V]) Count(store string, opts ...StoreOption) Table[K, int64] {
	if store == "" {
		g.s.b.graph.NewName(aggregatePrefix) // Kafka Streams takes a number here for reasons of its past
	}
	return aggregated(g, aggregateSpec[K, V, int64]{
		operator: "Count", prefix: aggregatePrefix, store: store, value: serde.Int64, opts: opts,
		make: func(a aggregateSite[K, int64]) receiver[K, V] {
			return &countNode[K, V]{aggregateSite: a}
		},
	})
}

// countNode is the typed short cut for the most frequent aggregate: its eight bytes never leave the node.
type countNode[K, V any] struct {
	aggregateSite[K, int64]
	bytes [8]byte
}

func (n *countNode[K, V]) receive(r record[K, V]) error {
	key, ok, err := encodeKey(&n.aggregateSite, &r)
	if !ok {
		return err
	}
	stored, ts, found, err := n.kv.Get(key)
	if err != nil {
		return n.stateFailed(err)
	}
	count := int64(0)
	if found {
		if len(stored) != len(n.bytes) {
			return n.stateFailed(fmt.Errorf("a count of %d bytes is stored, want %d", len(stored), len(n.bytes)))
		}
		count = int64(binary.BigEndian.Uint64(stored))
		r.ts = max(r.ts, ts)
	}
	binary.BigEndian.PutUint64(n.bytes[:], uint64(count+1))
	if err := n.kv.Put(key, n.bytes[:], r.ts); err != nil {
		return n.stateFailed(err)
	}
	return n.out.forward(update(&r, change[int64]{new: count + 1, hasNew: true, old: count, hasOld: true}))
}

// update returns a table update of the record's key, with its time and headers.
func update[K, V, A any](r *record[K, V], c change[A]) record[K, change[A]] {
	return record[K, change[A]]{key: r.key, value: c, ts: r.ts, headers: r.headers}
}

// aggregateSite is what the aggregates of one key have in common.
type aggregateSite[K, A any] struct {
	site
	key serde.Serde[K]
	kv  statestore.KeyValueStore
	buf []byte // of the encoded key
	old bool   // somebody asked for old values
	out *outlet[K, change[A]]
}

func (n *aggregateSite[K, A]) stateFailed(err error) error {
	return n.rt.Fail(topology.FailState, n.name, err)
}

// encodeKey returns the key's bytes, in a buffer of the node. ok is false when the record ends here.
func encodeKey[K, V, A any](n *aggregateSite[K, A], r *record[K, V]) (key []byte, ok bool, err error) {
	switch {
	case r.noKey:
		return nil, false, n.drop(topology.DropNullKey)
	case r.tombstone:
		return nil, false, n.drop(topology.DropNullValue)
	}
	n.enter()
	key, err = n.key.Append(n.buf[:0], r.key)
	if err != nil {
		return nil, false, n.rt.Fail(topology.FailEncode, n.name, fmt.Errorf("key: %w", err))
	}
	n.buf = key
	return key, true, nil
}
