package streams

import (
	"fmt"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/streams/serde"
)

// Table reads a topic as a table: a record with a value sets its key's row, a tombstone deletes it. The order of offsets
// counts, not that of timestamps. Records without a key are dropped and counted.
//
// With a store name the rows are kept and can be queried; without one every update just passes through.
func (b *Builder) Table[K, V any](topic string, key serde.Serde[K], value serde.Serde[V], store string, opts ...StoreOption) Table[K, V] {
	const operator = "Table"
	key, value = need(b, operator, "key", key), need(b, operator, "value", value)
	all := storeOpts(opts)
	if store == "" {
		b.graph.NewName(topic + "-STATE-STORE-") // Kafka Streams takes a number here, store or not
	}
	source := b.node(operator, all.name, "KSTREAM-SOURCE-")
	source.Topics = []string{topic}
	tableName := ""
	if all.name != "" {
		tableName = all.name + "-table-source"
	}
	n := b.node(operator, tableName, "KTABLE-SOURCE-")
	in := Stream[K, V]{b: b, node: addSource(b, source, key, value), key: key, value: value}
	return in.table(n, store, all)
}

// ToTable turns the stream into a table: a record with a value sets its key's row, a tombstone deletes it. Records
// without a key are dropped and counted. If the key may have changed since the records were partitioned, they go through
// a repartition topic named after the option [Named] or the store.
//
// With a store name the rows are kept and can be queried; without one every update just passes through.
func (s Stream[K, V]) ToTable(store string, opts ...StoreOption) Table[K, V] {
	const operator = "ToTable"
	all := storeOpts(opts)
	n := s.b.node(operator, all.name, "KSTREAM-TOTABLE-")
	if store == "" {
		s.b.graph.NewName("KSTREAM-TOTABLE-STATE-STORE-") // Kafka Streams takes a number here, store or not
	}
	s.key, s.value = need(s.b, operator, "key", s.key), need(s.b, operator, "value", s.value)
	if s.rekeyed {
		base := n.Name
		if all.name == "" && !s.b.generated {
			if base = store; base == "" {
				s.b.fail(operator, "needs the option Named or a store name for its repartition topic")
			}
		}
		s = s.repartitioned(operator, base, 0)
	}
	return s.table(n, store, all)
}

func (s Stream[K, V]) table(n topology.Node, store string, all operatorOptions) Table[K, V] {
	old := &oldValues{stored: store != ""}
	if store != "" {
		n.Stores = []string{store}
		s.b.addStore(statestore.Spec{Name: store, Kind: statestore.KeyValue, Logged: !all.unlogged})
	}
	node := attach(s.b, s.node, n, func(at site, out *outlet[K, change[V]]) (receiver[K, V], error) {
		if store == "" {
			return &passingTableNode[K, V]{site: at, out: out}, nil
		}
		kv, err := at.rt.KeyValue(store)
		if err != nil {
			return nil, err
		}
		return &storedTableNode[K, V]{
			site: at, key: s.key, kv: kv, rows: rowCodec[V]{value: s.value, wantOld: old.wanted}, out: out,
		}, nil
	})
	return Table[K, V]{b: s.b, node: node, key: s.key, value: s.value, store: store, old: old}
}

// passingTableNode turns records into updates without keeping rows.
type passingTableNode[K, V any] struct {
	site
	out *outlet[K, change[V]]
}

func (n *passingTableNode[K, V]) receive(r record[K, V]) error {
	if r.noKey {
		return n.drop(topology.DropNullKey)
	}
	return n.out.forward(update(&r, change[V]{new: r.value, hasNew: !r.tombstone}))
}

// storedTableNode keeps the rows.
type storedTableNode[K, V any] struct {
	site
	key  serde.Serde[K]
	kv   statestore.KeyValueStore
	buf  []byte // of the encoded key
	rows rowCodec[V]
	out  *outlet[K, change[V]]
}

func (n *storedTableNode[K, V]) receive(r record[K, V]) error {
	if r.noKey {
		return n.drop(topology.DropNullKey)
	}
	n.enter()
	key, err := n.key.Append(n.buf[:0], r.key)
	if err != nil {
		return n.rt.Fail(topology.FailEncode, n.name, fmt.Errorf("key: %w", err))
	}
	n.buf = key
	c := change[V]{new: r.value, hasNew: !r.tombstone}
	if n.rows.wantOld {
		if err := n.previous(key, &c); err != nil {
			return n.rt.Fail(topology.FailState, n.name, err)
		}
	}
	row, err := n.rows.encode(c.new, c.hasNew)
	if err != nil {
		return n.rt.Fail(topology.FailEncode, n.name, fmt.Errorf("value: %w", err))
	}
	if err := n.kv.Put(key, row, r.ts); err != nil {
		return n.rt.Fail(topology.FailState, n.name, err)
	}
	return n.out.forward(update(&r, c))
}

// previous fills the old value of the change.
func (n *storedTableNode[K, V]) previous(key []byte, c *change[V]) error {
	stored, _, found, err := n.kv.Get(key)
	if err != nil || !found {
		return err
	}
	c.hasOld = true
	c.old, err = n.rows.row(&n.rows.old, stored, true)
	return err
}
