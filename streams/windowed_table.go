package streams

import (
	"time"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/window"
)

// WindowedTable is a table whose rows belong to a key in a window.
//
// It is a type of its own and not a Table[window.Key[K], V]: a method that leads from a type to itself with a wrapped
// type parameter would never end for the compiler.
type WindowedTable[K, V any] struct {
	b     *Builder
	node  topology.NodeID
	key   serde.Serde[K]
	value serde.Serde[V] // nil when unknown
	store string
	def   window.Def
	old   *oldValues
}

// WindowRef names the store of a windowed table together with its types, for typed queries.
type WindowRef[K, V any] struct {
	store string
	key   serde.Serde[K]
	value serde.Serde[V]
	size  time.Duration
}

// Store returns the store's name, which is empty for a table that is not kept.
func (r WindowRef[K, V]) Store() string { return r.store }

// WindowSize returns the length of the table's windows.
func (r WindowRef[K, V]) WindowSize() time.Duration { return r.size }

// Ref returns what a query needs to read the table.
func (t WindowedTable[K, V]) Ref() WindowRef[K, V] {
	return WindowRef[K, V]{store: t.store, key: t.key, value: t.value, size: t.def.Size()}
}

// MapValues turns every value into another one. If W is nullable, returning nil deletes the row downstream.
func (t WindowedTable[K, V]) MapValues[W any](f func(V) W, opts ...Option) WindowedTable[K, W] {
	t.b.functions("MapValues", f == nil)
	n := t.b.node("MapValues", operatorOpts(opts).name, "KTABLE-MAPVALUES-")
	old := &oldValues{parent: t.old}
	node := attach(t.b, t.node, n, func(at site, out *outlet[window.Key[K], change[W]]) (receiver[window.Key[K], change[V]], error) {
		return &tableMapNode[window.Key[K], V, W]{site: at, f: f, old: old.wanted, nulls: nullOf[W](), out: out}, nil
	})
	return WindowedTable[K, W]{b: t.b, node: node, key: t.key, value: inherit[W](t.value), def: t.def, old: old}
}

// ToStream turns the updates into records; a deletion becomes a tombstone. f makes their key of the windowed key, and may
// return that itself: its serde is then Kafka's for windowed keys, and all windows of a key stay in one partition.
func (t WindowedTable[K, V]) ToStream[J any](f func(window.Key[K]) J, opts ...Option) Stream[J, V] {
	t.b.functions("ToStream", f == nil)
	n := t.b.node("ToStream", operatorOpts(opts).name, "KTABLE-TOSTREAM-")
	node := attach(t.b, t.node, n, func(at site, out *outlet[J, V]) (receiver[window.Key[K], change[V]], error) {
		return &toKeyedStreamNode[K, V, J]{site: at, f: f, keys: nullOf[J](), out: out}, nil
	})
	s := Stream[J, V]{b: t.b, node: node, key: inherit[J](t.key), value: t.value, rekeyed: true}
	if t.key == nil {
		return s
	}
	if windowed := inherit[J](serde.Windowed(t.key, t.def.Size())); windowed != nil {
		s.key, s.rekeyed = windowed, false
	}
	return s
}

type toKeyedStreamNode[K, V, J any] struct {
	site
	f    func(window.Key[K]) J
	keys nullness[J]
	out  *outlet[J, V]
}

func (n *toKeyedStreamNode[K, V, J]) receive(r record[window.Key[K], change[V]]) error {
	n.enter()
	key := n.f(r.key)
	return n.out.forward(record[J, V]{
		key: key, value: r.value.row(), ts: r.ts, headers: r.headers, noKey: n.keys.null(key), tombstone: !r.value.hasNew,
	})
}
