package streams

import (
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/streams/serde"
)

// Stream is a stream of records with keys of type K and values of type V. It is a value; every operator returns a new one
// and leaves the receiver as it is, so a stream may have several consumers. They run in the order of their declaration,
// each depth first.
//
// Operators whose functions take a value do not call them with a null value, unless V is nullable (see package serde).
// What happens to such a tombstone instead is said at each of them.
type Stream[K, V any] struct {
	b     *Builder
	node  topology.NodeID
	key   serde.Serde[K] // nil when unknown
	value serde.Serde[V] // nil when unknown
	// rekeyed says that keys may have changed since the records were partitioned.
	rekeyed bool
}

// WithKeySerde sets the serde that later operators inherit for the key.
func (s Stream[K, V]) WithKeySerde(key serde.Serde[K]) Stream[K, V] {
	s.key = key
	return s
}

// WithValueSerde sets the serde that later operators inherit for the value.
func (s Stream[K, V]) WithValueSerde(value serde.Serde[V]) Stream[K, V] {
	s.value = value
	return s
}

// same is the result of an operator that keeps the types.
func (s Stream[K, V]) same(node topology.NodeID) Stream[K, V] {
	s.node = node
	return s
}

// Filter keeps the records for which keep returns true. Tombstones of a V that is not nullable pass.
func (s Stream[K, V]) Filter(keep func(K, V) bool, opts ...Option) Stream[K, V] {
	return s.filter("Filter", keep, true, opts)
}

// FilterNot keeps the records for which drop returns false. Tombstones of a V that is not nullable pass.
func (s Stream[K, V]) FilterNot(drop func(K, V) bool, opts ...Option) Stream[K, V] {
	return s.filter("FilterNot", drop, false, opts)
}

func (s Stream[K, V]) filter(operator string, test func(K, V) bool, want bool, opts []Option) Stream[K, V] {
	s.b.functions(operator, test == nil)
	n := s.b.node(operator, operatorOpts(opts).name, "KSTREAM-FILTER-")
	return s.same(attach(s.b, s.node, n, func(at site, out *outlet[K, V]) (receiver[K, V], error) {
		return &filterNode[K, V]{site: at, test: test, want: want, pass: !nullOf[V]().nullable(), out: out}, nil
	}))
}

type filterNode[K, V any] struct {
	site
	test func(K, V) bool
	want bool
	pass bool // tombstones pass untested
	out  *outlet[K, V]
}

func (n *filterNode[K, V]) receive(r record[K, V]) error {
	if r.tombstone && n.pass {
		return n.out.forward(r)
	}
	n.enter()
	if n.test(r.key, r.value) != n.want {
		return nil
	}
	return n.out.forward(r)
}

// Peek calls look for every record and passes it on. look is not called for tombstones of a V that is not nullable.
func (s Stream[K, V]) Peek(look func(K, V), opts ...Option) Stream[K, V] {
	s.b.functions("Peek", look == nil)
	n := s.b.node("Peek", operatorOpts(opts).name, "KSTREAM-PEEK-")
	return s.same(attach(s.b, s.node, n, func(at site, out *outlet[K, V]) (receiver[K, V], error) {
		return &peekNode[K, V]{site: at, look: look, skip: !nullOf[V]().nullable(), out: out}, nil
	}))
}

type peekNode[K, V any] struct {
	site
	look func(K, V)
	skip bool // tombstones are not looked at
	out  *outlet[K, V]
}

func (n *peekNode[K, V]) receive(r record[K, V]) error {
	if !r.tombstone || !n.skip {
		n.enter()
		n.look(r.key, r.value)
	}
	return n.out.forward(r)
}

// ForEach ends the stream by calling do for every record. Tombstones of a V that is not nullable are dropped and counted.
//
// Under exactly-once only Kafka and state are transactional: do may be called again for records of an aborted
// transaction.
func (s Stream[K, V]) ForEach(do func(K, V), opts ...Option) {
	s.b.functions("ForEach", do == nil)
	s.forEach("ForEach", func(k K, v V) error {
		do(k, v)
		return nil
	}, opts)
}

// TryForEach is [Stream.ForEach] for a function that can fail. The process error handler decides about its errors.
func (s Stream[K, V]) TryForEach(do func(K, V) error, opts ...Option) {
	s.b.functions("TryForEach", do == nil)
	s.forEach("TryForEach", do, opts)
}

func (s Stream[K, V]) forEach(operator string, do func(K, V) error, opts []Option) {
	n := s.b.node(operator, operatorOpts(opts).name, "KSTREAM-FOREACH-")
	attach(s.b, s.node, n, func(at site, _ *outlet[K, V]) (receiver[K, V], error) {
		return &forEachNode[K, V]{site: at, do: do, drops: !nullOf[V]().nullable()}, nil
	})
}

type forEachNode[K, V any] struct {
	site
	do    func(K, V) error
	drops bool // tombstones are dropped
}

func (n *forEachNode[K, V]) receive(r record[K, V]) error {
	if r.tombstone && n.drops {
		return n.drop(topology.DropNullValue)
	}
	n.enter()
	if err := n.do(r.key, r.value); err != nil {
		return n.failed(err)
	}
	return nil
}
