package streams

import "github.com/millrace-io/millrace/internal/topology"

// FlatMapValues turns every value into any number of values and keeps the key; strings.Fields fits. Tombstones of a V
// that is not nullable are dropped and counted.
func (s Stream[K, V]) FlatMapValues[W any](f func(V) []W, opts ...Option) Stream[K, W] {
	s.b.functions("FlatMapValues", f == nil)
	return flatMappedValues(s, "FlatMapValues", func(v V) ([]W, error) { return f(v), nil }, opts)
}

// TryFlatMapValues is [Stream.FlatMapValues] for a function that can fail. The process error handler decides about its
// errors.
func (s Stream[K, V]) TryFlatMapValues[W any](f func(V) ([]W, error), opts ...Option) Stream[K, W] {
	s.b.functions("TryFlatMapValues", f == nil)
	return flatMappedValues(s, "TryFlatMapValues", f, opts)
}

func flatMappedValues[K, V, W any](s Stream[K, V], operator string, f func(V) ([]W, error), opts []Option) Stream[K, W] {
	n := s.b.node(operator, operatorOpts(opts).name, "KSTREAM-FLATMAPVALUES-")
	node := attach(s.b, s.node, n, func(at site, out *outlet[K, W]) (receiver[K, V], error) {
		return &flatMapValuesNode[K, V, W]{site: at, f: f, drops: !nullOf[V]().nullable(), values: nullOf[W](), out: out}, nil
	})
	return Stream[K, W]{b: s.b, node: node, key: s.key, value: inherit[W](s.value), rekeyed: s.rekeyed}
}

type flatMapValuesNode[K, V, W any] struct {
	site
	f      func(V) ([]W, error)
	drops  bool // tombstones are dropped
	values nullness[W]
	out    *outlet[K, W]
}

func (n *flatMapValuesNode[K, V, W]) receive(r record[K, V]) error {
	if r.tombstone && n.drops {
		return n.drop(topology.DropNullValue)
	}
	n.enter()
	values, err := n.f(r.value)
	if err != nil {
		return n.failed(err)
	}
	for _, value := range values {
		result := derive(&r, r.key, value)
		result.tombstone = n.values.null(value)
		if err := n.out.forward(result); err != nil {
			return err
		}
	}
	return nil
}

// FlatMapValuesFunc is [Stream.FlatMapValues] without a slice: f hands each value to emit, which runs everything
// downstream before it returns. emit must not be kept.
func (s Stream[K, V]) FlatMapValuesFunc[W any](f func(value V, emit func(W)), opts ...Option) Stream[K, W] {
	s.b.functions("FlatMapValuesFunc", f == nil)
	n := s.b.node("FlatMapValuesFunc", operatorOpts(opts).name, "KSTREAM-FLATMAPVALUES-")
	node := attach(s.b, s.node, n, func(at site, out *outlet[K, W]) (receiver[K, V], error) {
		m := &emitValuesNode[K, V, W]{site: at, f: f, drops: !nullOf[V]().nullable()}
		values := nullOf[W]()
		m.emit = func(value W) {
			if m.err != nil {
				return
			}
			result := derive(&m.current, m.current.key, value)
			result.tombstone = values.null(value)
			m.err = out.forward(result)
			m.enter() // back in user code
		}
		return m, nil
	})
	return Stream[K, W]{b: s.b, node: node, key: s.key, value: inherit[W](s.value), rekeyed: s.rekeyed}
}

type emitValuesNode[K, V, W any] struct {
	site
	f       func(V, func(W))
	drops   bool // tombstones are dropped
	emit    func(W)
	current record[K, V] // what emit refers to
	err     error        // first error downstream; ends the record
}

func (n *emitValuesNode[K, V, W]) receive(r record[K, V]) error {
	if r.tombstone && n.drops {
		return n.drop(topology.DropNullValue)
	}
	n.enter()
	n.current, n.err = r, nil
	n.f(r.value, n.emit)
	n.current = record[K, V]{} // an idle stream must not keep the last batch in memory
	return n.err
}

// FlatMap turns every record into any number of records with new keys and values: f hands each to emit, which runs
// everything downstream before it returns. emit must not be kept. The key counts as changed. Tombstones of a V that is
// not nullable are dropped and counted.
func (s Stream[K, V]) FlatMap[J, W any](f func(key K, value V, emit func(J, W)), opts ...Option) Stream[J, W] {
	s.b.functions("FlatMap", f == nil)
	n := s.b.node("FlatMap", operatorOpts(opts).name, "KSTREAM-FLATMAP-")
	node := attach(s.b, s.node, n, func(at site, out *outlet[J, W]) (receiver[K, V], error) {
		m := &emitNode[K, V, J, W]{site: at, f: f, drops: !nullOf[V]().nullable()}
		keys, values := nullOf[J](), nullOf[W]()
		m.emit = func(key J, value W) {
			if m.err != nil {
				return
			}
			result := derive(&m.current, key, value)
			result.noKey, result.tombstone = keys.null(key), values.null(value)
			m.err = out.forward(result)
			m.enter() // back in user code
		}
		return m, nil
	})
	return Stream[J, W]{b: s.b, node: node, key: inherit[J](s.key), value: inherit[W](s.value), rekeyed: true}
}

type emitNode[K, V, J, W any] struct {
	site
	f       func(K, V, func(J, W))
	drops   bool // tombstones are dropped
	emit    func(J, W)
	current record[K, V] // what emit refers to
	err     error        // first error downstream; ends the record
}

func (n *emitNode[K, V, J, W]) receive(r record[K, V]) error {
	if r.tombstone && n.drops {
		return n.drop(topology.DropNullValue)
	}
	n.enter()
	n.current, n.err = r, nil
	n.f(r.key, r.value, n.emit)
	n.current = record[K, V]{} // an idle stream must not keep the last batch in memory
	return n.err
}
