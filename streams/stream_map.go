package streams

import (
	"github.com/millrace-io/millrace/internal/topology"
)

// Map turns every record into one with a new key and value. The key counts as changed, even if the function returns the
// same one. Tombstones of a V that is not nullable are dropped and counted.
func (s Stream[K, V]) Map[J, W any](f func(K, V) (J, W), opts ...Option) Stream[J, W] {
	s.b.functions("Map", f == nil)
	return mapped(s, "Map", "KSTREAM-MAP-", func(k K, v V) (J, W, error) {
		j, w := f(k, v)
		return j, w, nil
	}, opts)
}

// TryMap is [Stream.Map] for a function that can fail. The process error handler decides about its errors.
func (s Stream[K, V]) TryMap[J, W any](f func(K, V) (J, W, error), opts ...Option) Stream[J, W] {
	s.b.functions("TryMap", f == nil)
	return mapped(s, "TryMap", "KSTREAM-MAP-", f, opts)
}

func mapped[K, V, J, W any](s Stream[K, V], operator, prefix string, f func(K, V) (J, W, error), opts []Option) Stream[J, W] {
	n := s.b.node(operator, operatorOpts(opts).name, prefix)
	node := attach(s.b, s.node, n, func(at site, out *outlet[J, W]) (receiver[K, V], error) {
		return &mapNode[K, V, J, W]{
			site: at, f: f, drops: !nullOf[V]().nullable(), keys: nullOf[J](), values: nullOf[W](), out: out,
		}, nil
	})
	return Stream[J, W]{b: s.b, node: node, key: inherit[J](s.key), value: inherit[W](s.value), rekeyed: true}
}

type mapNode[K, V, J, W any] struct {
	site
	f      func(K, V) (J, W, error)
	drops  bool // tombstones are dropped
	keys   nullness[J]
	values nullness[W]
	out    *outlet[J, W]
}

func (n *mapNode[K, V, J, W]) receive(r record[K, V]) error {
	if r.tombstone && n.drops {
		return n.drop(topology.DropNullValue)
	}
	n.enter()
	key, value, err := n.f(r.key, r.value)
	if err != nil {
		return n.failed(err)
	}
	result := derive(&r, key, value)
	result.noKey, result.tombstone = n.keys.null(key), n.values.null(value)
	return n.out.forward(result)
}

// SelectKey gives every record a new key. Tombstones of a V that is not nullable are dropped and counted.
func (s Stream[K, V]) SelectKey[J any](f func(K, V) J, opts ...Option) Stream[J, V] {
	return selectKey(s, "SelectKey", f, operatorOpts(opts).name)
}

func selectKey[K, V, J any](s Stream[K, V], operator string, f func(K, V) J, name string) Stream[J, V] {
	s.b.functions(operator, f == nil)
	n := s.b.node(operator, name, "KSTREAM-KEY-SELECT-")
	node := attach(s.b, s.node, n, func(at site, out *outlet[J, V]) (receiver[K, V], error) {
		return &selectKeyNode[K, V, J]{site: at, f: f, drops: !nullOf[V]().nullable(), keys: nullOf[J](), out: out}, nil
	})
	return Stream[J, V]{b: s.b, node: node, key: inherit[J](s.key), value: s.value, rekeyed: true}
}

type selectKeyNode[K, V, J any] struct {
	site
	f     func(K, V) J
	drops bool // tombstones are dropped
	keys  nullness[J]
	out   *outlet[J, V]
}

func (n *selectKeyNode[K, V, J]) receive(r record[K, V]) error {
	if r.tombstone && n.drops {
		return n.drop(topology.DropNullValue)
	}
	n.enter()
	result := derive(&r, n.f(r.key, r.value), r.value)
	result.noKey = n.keys.null(result.key)
	return n.out.forward(result)
}

// MapValues turns every value into another one and keeps the key. Tombstones of a V that is not nullable stay tombstones.
func (s Stream[K, V]) MapValues[W any](f func(V) W, opts ...Option) Stream[K, W] {
	s.b.functions("MapValues", f == nil)
	return mappedValues(s, "MapValues", func(_ K, v V) (W, error) { return f(v), nil }, opts)
}

// MapValuesWithKey is [Stream.MapValues] for a function that also sees the key. It must not change it.
func (s Stream[K, V]) MapValuesWithKey[W any](f func(K, V) W, opts ...Option) Stream[K, W] {
	s.b.functions("MapValuesWithKey", f == nil)
	return mappedValues(s, "MapValuesWithKey", func(k K, v V) (W, error) { return f(k, v), nil }, opts)
}

// TryMapValues is [Stream.MapValues] for a function that can fail. The process error handler decides about its errors.
func (s Stream[K, V]) TryMapValues[W any](f func(V) (W, error), opts ...Option) Stream[K, W] {
	s.b.functions("TryMapValues", f == nil)
	return mappedValues(s, "TryMapValues", func(_ K, v V) (W, error) { return f(v) }, opts)
}

func mappedValues[K, V, W any](s Stream[K, V], operator string, f func(K, V) (W, error), opts []Option) Stream[K, W] {
	n := s.b.node(operator, operatorOpts(opts).name, "KSTREAM-MAPVALUES-")
	node := attach(s.b, s.node, n, func(at site, out *outlet[K, W]) (receiver[K, V], error) {
		return &mapValuesNode[K, V, W]{site: at, f: f, pass: !nullOf[V]().nullable(), values: nullOf[W](), out: out}, nil
	})
	return Stream[K, W]{b: s.b, node: node, key: s.key, value: inherit[W](s.value), rekeyed: s.rekeyed}
}

type mapValuesNode[K, V, W any] struct {
	site
	f      func(K, V) (W, error)
	pass   bool // tombstones pass unmapped
	values nullness[W]
	out    *outlet[K, W]
}

func (n *mapValuesNode[K, V, W]) receive(r record[K, V]) error {
	var value W
	if r.tombstone && n.pass {
		return n.out.forward(derive(&r, r.key, value))
	}
	n.enter()
	value, err := n.f(r.key, r.value)
	if err != nil {
		return n.failed(err)
	}
	result := derive(&r, r.key, value)
	result.tombstone = n.values.null(value)
	return n.out.forward(result)
}
