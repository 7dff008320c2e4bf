package streams

import (
	"fmt"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/window"
)

// WindowedStream is a grouped stream divided into time windows. Its operators keep one row for each key and window, until
// the window's retention is over.
//
// Stream time is the greatest timestamp that the operator has seen in its task, of any key. A record whose window is
// closed by then is late: it is dropped and counted, once for each of its windows that is closed. Records without a key
// are dropped and counted.
type WindowedStream[K, V any] struct {
	g   GroupedStream[K, V]
	def window.Def
}

// Count counts the records of each key and window, tombstones included.
func (w WindowedStream[K, V]) Count(store string, opts ...StoreOption) WindowedTable[K, int64] {
	if store == "" {
		w.g.s.b.graph.NewName(aggregatePrefix) // Kafka Streams takes a number here for reasons of its past
	}
	return windowed(w, windowSpec[K, V, int64]{
		operator: "Count", prefix: aggregatePrefix, store: store, value: serde.Int64, opts: opts, nulls: true,
		initial: func() int64 { return 0 },
		step:    func(_ K, _ V, count int64, _ bool) (int64, bool) { return count + 1, true },
	})
}

// Reduce combines the values of each key and window; see [GroupedStream.Reduce]. A nullable V may be null here, both as
// value and as aggregate, as in Kafka Streams; otherwise tombstones are dropped and counted.
func (w WindowedStream[K, V]) Reduce(store string, f func(aggregate, value V) V, opts ...StoreOption) WindowedTable[K, V] {
	const operator = "Reduce"
	w.g.s.b.functions(operator, f == nil)
	value := need(w.g.s.b, operator, "value", w.g.s.value)
	return windowed(w, windowSpec[K, V, V]{
		operator: operator, prefix: reducePrefix, store: store, value: value, opts: opts, step: reducing[K](f),
	})
}

// Aggregate folds the values of each key and window; see [GroupedStream.Aggregate]. A nullable V may be null here, as in
// Kafka Streams; otherwise tombstones are dropped and counted.
func (w WindowedStream[K, V]) Aggregate[A any](store string, initial func() A, add func(key K, value V, aggregate A) A,
	value serde.Serde[A], opts ...StoreOption) WindowedTable[K, A] {
	const operator = "Aggregate"
	w.g.s.b.functions(operator, initial == nil, add == nil)
	value = need(w.g.s.b, operator, "aggregate", value)
	return windowed(w, windowSpec[K, V, A]{
		operator: operator, prefix: aggregatePrefix, store: store, value: value, opts: opts, initial: initial, step: folding(add),
	})
}

// windowSpec describes a windowed aggregate.
type windowSpec[K, V, A any] struct {
	operator, prefix, store string
	value                   serde.Serde[A]
	opts                    []StoreOption
	initial                 func() A // nil without an initial value
	step                    step[K, V, A]
	nulls                   bool // tombstones are aggregated even if V is not nullable
}

func windowed[K, V, A any](w WindowedStream[K, V], spec windowSpec[K, V, A]) WindowedTable[K, A] {
	b, opts := w.g.s.b, storeOpts(spec.opts)
	store := b.storeName(spec.operator, spec.store, spec.prefix)
	n := b.node(spec.operator, opts.name, spec.prefix)
	n.Stores = []string{store}
	in := w.g.partitioned(spec.operator, store)
	key := need(b, spec.operator, "key", in.key)
	retention := w.def.Retention()
	if opts.retention != 0 {
		if opts.retention < retention {
			b.fail(spec.operator, "Retention(%v) is shorter than the window's size plus its grace, %v", opts.retention, retention)
		}
		retention = opts.retention
	}
	b.addStore(statestore.Spec{
		Name: store, Kind: statestore.Window, Logged: !opts.unlogged,
		WindowSize: w.def.Size().Milliseconds(), Retention: retention.Milliseconds(),
	})
	old := &oldValues{stored: true}
	node := attach(b, in.node, n, func(at site, out *outlet[window.Key[K], change[A]]) (receiver[K, V], error) {
		rows, err := at.rt.Window(store)
		if err != nil {
			return nil, err
		}
		return &windowNode[K, V, A]{
			site: at, key: key, step: spec.step, store: rows, calc: w.def.Calc(), now: at.rt.Clock(store),
			drops: !spec.nulls && !nullOf[V]().nullable(), nulls: nullOf[A](),
			rows: rowCodec[A]{value: spec.value, initial: spec.initial, wantOld: old.wanted}, out: out,
		}, nil
	})
	return WindowedTable[K, A]{b: b, node: node, key: key, value: spec.value, store: store, def: w.def, old: old}
}

// windowNode folds a record into each of its windows.
type windowNode[K, V, A any] struct {
	site
	key   serde.Serde[K]
	step  step[K, V, A]
	store statestore.WindowStore
	calc  window.Calc
	now   *int64 // stream time
	drops bool   // tombstones are dropped
	nulls nullness[A]
	buf   []byte // of the encoded key
	rows  rowCodec[A]
	out   *outlet[window.Key[K], change[A]]
}

func (n *windowNode[K, V, A]) receive(r record[K, V]) error {
	if r.noKey {
		return n.drop(topology.DropNullKey)
	}
	*n.now = max(*n.now, r.ts)
	if r.tombstone && n.drops {
		return n.drop(topology.DropNullValue)
	}
	n.enter()
	key, err := n.key.Append(n.buf[:0], r.key)
	if err != nil {
		return n.rt.Fail(topology.FailEncode, n.name, fmt.Errorf("key: %w", err))
	}
	n.buf = key
	last := n.calc.Last(r.ts)
	for start := n.calc.First(r.ts); ; start += n.calc.Advance {
		if !n.calc.Open(start, *n.now) {
			n.rt.Drop(topology.DropLate)
		} else if err := n.fold(&r, key, start); err != nil {
			return err
		}
		if start == last {
			return nil
		}
	}
}

// fold updates one window and forwards the change.
func (n *windowNode[K, V, A]) fold(r *record[K, V], key []byte, start int64) error {
	stored, ts, found, err := n.store.Get(key, start)
	if err != nil {
		return n.stateFailed(err)
	}
	if ts = max(r.ts, ts); !found {
		ts = r.ts
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
	at := r.ts // Kafka's changelog has deletions under the record's own time
	if row != nil {
		at = ts
	}
	if err := n.store.Put(key, start, row, at); err != nil {
		return n.stateFailed(err)
	}
	return n.out.forward(record[window.Key[K], change[A]]{
		key:   window.Key[K]{Key: r.key, Start: start, End: window.End(start, n.calc.Size)},
		value: c, ts: ts, headers: r.headers,
	})
}

func (n *windowNode[K, V, A]) stateFailed(err error) error {
	return n.rt.Fail(topology.FailState, n.name, err)
}
