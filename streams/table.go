package streams

import (
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/streams/serde"
)

// Table is a table that changes: the latest value of each key. Its operators see every update, deletions included; their
// functions are called for existing values only.
type Table[K, V any] struct {
	b     *Builder
	node  topology.NodeID
	key   serde.Serde[K]
	value serde.Serde[V] // nil when unknown
	store string         // "" when the table is not kept
	old   *oldValues
}

// oldValues tells whether updates of a table carry the value that they replace. It costs work, so an operator that needs
// it asks, and gets it when there is a store above it.
type oldValues struct {
	stored bool // the table itself knows old values
	parent *oldValues
	wanted bool
}

// want asks for old values and reports whether they come.
func (o *oldValues) want() bool {
	if o.stored || o.parent != nil && o.parent.want() {
		o.wanted = true
	}
	return o.wanted
}

// TableRef names the store of a table together with its types, for typed queries.
type TableRef[K, V any] struct {
	store string
	key   serde.Serde[K]
	value serde.Serde[V]
}

// Store returns the store's name, which is empty for a table that is not kept.
func (r TableRef[K, V]) Store() string { return r.store }

// Ref returns what a query needs to read the table.
func (t Table[K, V]) Ref() TableRef[K, V] {
	return TableRef[K, V]{store: t.store, key: t.key, value: t.value}
}

// Filter keeps the rows for which keep returns true. A row that ceases to match is deleted downstream. Nothing is sent
// for a row that matched neither before nor now, if the table is kept in a store. Before its first record, a row of an
// aggregate counts as its initial value, as in Kafka Streams: if that matches, a deletion is sent.
func (t Table[K, V]) Filter(keep func(K, V) bool, opts ...Option) Table[K, V] {
	return t.filter("Filter", keep, true, opts)
}

// FilterNot keeps the rows for which drop returns false; see [Table.Filter].
func (t Table[K, V]) FilterNot(drop func(K, V) bool, opts ...Option) Table[K, V] {
	return t.filter("FilterNot", drop, false, opts)
}

func (t Table[K, V]) filter(operator string, test func(K, V) bool, want bool, opts []Option) Table[K, V] {
	t.b.functions(operator, test == nil)
	n := t.b.node(operator, operatorOpts(opts).name, "KTABLE-FILTER-")
	old := &oldValues{parent: t.old}
	old.want()
	node := attach(t.b, t.node, n, func(at site, out *outlet[K, change[V]]) (receiver[K, change[V]], error) {
		return &tableFilterNode[K, V]{site: at, test: test, want: want, old: old.wanted, out: out}, nil
	})
	return Table[K, V]{b: t.b, node: node, key: t.key, value: t.value, old: old}
}

type tableFilterNode[K, V any] struct {
	site
	test func(K, V) bool
	want bool
	old  bool
	out  *outlet[K, change[V]]
}

func (n *tableFilterNode[K, V]) receive(r record[K, change[V]]) error {
	n.enter()
	c := &r.value
	c.hasNew = c.hasNew && n.test(r.key, c.new) == n.want
	c.hasOld = n.old && c.hasOld && n.test(r.key, c.old) == n.want
	if n.old && !c.hasNew && !c.hasOld {
		return nil
	}
	return n.out.forward(r)
}

// MapValues turns every value into another one. If W is nullable, returning nil deletes the row downstream.
func (t Table[K, V]) MapValues[W any](f func(V) W, opts ...Option) Table[K, W] {
	t.b.functions("MapValues", f == nil)
	n := t.b.node("MapValues", operatorOpts(opts).name, "KTABLE-MAPVALUES-")
	old := &oldValues{parent: t.old}
	node := attach(t.b, t.node, n, func(at site, out *outlet[K, change[W]]) (receiver[K, change[V]], error) {
		return &tableMapNode[K, V, W]{site: at, f: f, old: old.wanted, nulls: nullOf[W](), out: out}, nil
	})
	return Table[K, W]{b: t.b, node: node, key: t.key, value: inherit[W](t.value), old: old}
}

type tableMapNode[K, V, W any] struct {
	site
	f     func(V) W
	old   bool
	nulls nullness[W]
	out   *outlet[K, change[W]]
}

func (n *tableMapNode[K, V, W]) receive(r record[K, change[V]]) error {
	n.enter()
	var c change[W]
	if r.value.hasNew {
		c.new = n.f(r.value.new)
		c.hasNew = !n.nulls.null(c.new)
	}
	if n.old && r.value.hasOld {
		c.old = n.f(r.value.old)
		c.hasOld = !n.nulls.null(c.old)
	}
	return n.out.forward(update(&r, c))
}

// ToStream turns the updates into records; a deletion becomes a tombstone.
func (t Table[K, V]) ToStream(opts ...Option) Stream[K, V] {
	n := t.b.node("ToStream", operatorOpts(opts).name, "KTABLE-TOSTREAM-")
	node := attach(t.b, t.node, n, func(_ site, out *outlet[K, V]) (receiver[K, change[V]], error) {
		return toStreamNode[K, V]{out}, nil
	})
	return Stream[K, V]{b: t.b, node: node, key: t.key, value: t.value}
}

type toStreamNode[K, V any] struct{ out *outlet[K, V] }

func (n toStreamNode[K, V]) receive(r record[K, change[V]]) error {
	return n.out.forward(record[K, V]{
		key: r.key, value: r.value.row(), ts: r.ts, headers: r.headers, tombstone: !r.value.hasNew,
	})
}
