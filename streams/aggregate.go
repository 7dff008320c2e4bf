package streams

import (
	"fmt"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/streams/serde"
)

// Reduce combines the values of each key into one value of the same type. The first value becomes the aggregate as it
// is. If V is nullable, returning nil deletes the row, and the next value begins anew.
//
// f may change aggregate in place and return it, but must not keep it.
func (g GroupedStream[K, V]) Reduce(store string, f func(aggregate, value V) V, opts ...StoreOption) Table[K, V] {
	g.s.b.functions("Reduce", f == nil)
	return g.reduce("Reduce", store, reducing[K](f), opts)
}

// ReduceOrDelete is [GroupedStream.Reduce] for types without a null: returning false deletes the row.
func (g GroupedStream[K, V]) ReduceOrDelete(store string, f func(aggregate, value V) (V, bool), opts ...StoreOption) Table[K, V] {
	g.s.b.functions("ReduceOrDelete", f == nil)
	return g.reduce("ReduceOrDelete", store, reducingOrDelete[K](f), opts)
}

func (g GroupedStream[K, V]) reduce(operator, store string, f step[K, V, V], opts []StoreOption) Table[K, V] {
	value := need(g.s.b, operator, "value", g.s.value)
	return aggregated(g, stepSpec(operator, reducePrefix, store, value, nil, f, opts))
}

// Aggregate folds the values of each key into an aggregate of another type, beginning with initial. A nil serde stands
// for the type's default. If A is nullable, returning nil deletes the row, and the next value begins anew.
//
// add may change aggregate in place and return it, but must not keep it.
func (g GroupedStream[K, V]) Aggregate[A any](store string, initial func() A, add func(key K, value V, aggregate A) A,
	value serde.Serde[A], opts ...StoreOption) Table[K, A] {
	const operator = "Aggregate"
	g.s.b.functions(operator, initial == nil, add == nil)
	value = need(g.s.b, operator, "aggregate", value)
	return aggregated(g, stepSpec(operator, aggregatePrefix, store, value, initial, folding(add), opts))
}

// AggregateOrDelete is [GroupedStream.Aggregate] for types without a null: returning false deletes the row.
func (g GroupedStream[K, V]) AggregateOrDelete[A any](store string, initial func() A,
	add func(key K, value V, aggregate A) (A, bool), value serde.Serde[A], opts ...StoreOption) Table[K, A] {
	const operator = "AggregateOrDelete"
	g.s.b.functions(operator, initial == nil, add == nil)
	value = need(g.s.b, operator, "aggregate", value)
	return aggregated(g, stepSpec(operator, aggregatePrefix, store, value, initial, foldingOrDelete(add), opts))
}

// step folds one value; found tells whether there is an aggregate. keep false deletes it.
type step[K, V, A any] func(key K, value V, aggregate A, found bool) (result A, keep bool)

func reducing[K, V any](f func(aggregate, value V) V) step[K, V, V] {
	return func(_ K, value, aggregate V, found bool) (V, bool) {
		if !found {
			return value, true
		}
		return f(aggregate, value), true
	}
}

func reducingOrDelete[K, V any](f func(aggregate, value V) (V, bool)) step[K, V, V] {
	return func(_ K, value, aggregate V, found bool) (V, bool) {
		if !found {
			return value, true
		}
		return f(aggregate, value)
	}
}

func folding[K, V, A any](add func(K, V, A) A) step[K, V, A] {
	return func(key K, value V, aggregate A, _ bool) (A, bool) { return add(key, value, aggregate), true }
}

func foldingOrDelete[K, V, A any](add func(K, V, A) (A, bool)) step[K, V, A] {
	return func(key K, value V, aggregate A, _ bool) (A, bool) { return add(key, value, aggregate) }
}

// aggregateSpec describes an unwindowed aggregate.
type aggregateSpec[K, V, A any] struct {
	operator, prefix, store string
	value                   serde.Serde[A]
	opts                    []StoreOption
	make                    func(aggregateSite[K, A]) receiver[K, V]
}

func stepSpec[K, V, A any](operator, prefix, store string, value serde.Serde[A], initial func() A, f step[K, V, A],
	opts []StoreOption) aggregateSpec[K, V, A] {
	return aggregateSpec[K, V, A]{
		operator: operator, prefix: prefix, store: store, value: value, opts: opts,
		make: func(a aggregateSite[K, A]) receiver[K, V] {
			return &aggregateNode[K, V, A]{aggregateSite: a, rows: rowCodec[A]{value: value, initial: initial, wantOld: a.old}, step: f, nulls: nullOf[A]()}
		},
	}
}

// aggregated adds an aggregate to the graph. The order of names is Kafka Streams': store, operator, repartition.
func aggregated[K, V, A any](g GroupedStream[K, V], spec aggregateSpec[K, V, A]) Table[K, A] {
	b, opts := g.s.b, storeOpts(spec.opts)
	store := b.storeName(spec.operator, spec.store, spec.prefix)
	n := b.node(spec.operator, opts.name, spec.prefix)
	n.Stores = []string{store}
	in := g.partitioned(spec.operator, store)
	key := need(b, spec.operator, "key", in.key)
	b.addStore(statestore.Spec{Name: store, Kind: statestore.KeyValue, Logged: !opts.unlogged})
	old := &oldValues{stored: true}
	node := attach(b, in.node, n, func(at site, out *outlet[K, change[A]]) (receiver[K, V], error) {
		kv, err := at.rt.KeyValue(store)
		if err != nil {
			return nil, err
		}
		return spec.make(aggregateSite[K, A]{site: at, key: key, kv: kv, old: old.wanted, out: out}), nil
	})
	return Table[K, A]{b: b, node: node, key: key, value: spec.value, store: store, old: old}
}

// aggregateNode folds values into rows.
type aggregateNode[K, V, A any] struct {
	aggregateSite[K, A]
	step  step[K, V, A]
	nulls nullness[A]
	rows  rowCodec[A]
}

func (n *aggregateNode[K, V, A]) receive(r record[K, V]) error {
	key, ok, err := encodeKey(&n.aggregateSite, &r)
	if !ok {
		return err
	}
	stored, ts, found, err := n.kv.Get(key)
	if err != nil {
		return n.stateFailed(err)
	}
	at := r.ts
	if found {
		r.ts = max(r.ts, ts)
	}
	n.enter()
	var c change[A]
	aggregate, err := n.rows.before(stored, found, &c)
	if err != nil {
		return n.stateFailed(err)
	}
	c.new, c.hasNew = n.step(r.key, r.value, aggregate, found)
	c.hasNew = c.hasNew && !n.nulls.null(c.new)
	row, err := n.rows.encode(c.new, c.hasNew)
	if err != nil {
		return n.rt.Fail(topology.FailEncode, n.name, fmt.Errorf("aggregate: %w", err))
	}
	if row != nil { // Kafka's changelog has deletions under the record's own time
		at = r.ts
	}
	if err := n.kv.Put(key, row, at); err != nil {
		return n.stateFailed(err)
	}
	return n.out.forward(update(&r, c))
}

// rowCodec decodes and encodes the rows of a store, in buffers of its own.
type rowCodec[A any] struct {
	value        serde.Serde[A]
	initial      func() A // of a row that does not exist; nil when there is none
	wantOld      bool
	in, old, out []byte
}

// before returns the row that a record meets, and fills the old value of the change if somebody wants it. A row that does
// not exist begins with the initial value, which counts as its old value, too, as in Kafka Streams.
//
// Old value and aggregate are made one by one, because the aggregate may be changed in place.
func (c *rowCodec[A]) before(stored []byte, found bool, to *change[A]) (aggregate A, err error) {
	if !found && c.initial == nil {
		return aggregate, nil
	}
	if c.wantOld {
		to.hasOld = true
		if to.old, err = c.row(&c.old, stored, found); err != nil {
			return aggregate, err
		}
	}
	return c.row(&c.in, stored, found)
}

// row copies the stored bytes before it decodes them: they are valid until the next call on a store only, but a serde may
// alias them, and the value lives on through everything downstream.
func (c *rowCodec[A]) row(buf *[]byte, stored []byte, found bool) (A, error) {
	if !found {
		return c.initial(), nil
	}
	*buf = append((*buf)[:0], stored...)
	v, err := c.value.Decode(*buf)
	if err != nil {
		return v, fmt.Errorf("stored row: %w", err)
	}
	return v, nil
}

// encode returns the row to store, nil for a deletion.
func (c *rowCodec[A]) encode(v A, keep bool) ([]byte, error) {
	if !keep {
		return nil, nil
	}
	if c.out == nil {
		c.out = make([]byte, 0, 16) // an empty row must not look like a deletion
	}
	row, err := c.value.Append(c.out[:0], v)
	if err != nil {
		return nil, err
	}
	c.out = row
	return row, nil
}
