package streams

import (
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/window"
)

// GroupedStream is a stream whose records are grouped by key: all records of a key meet in one task. Its operators keep
// state in a named store and result in a table.
//
// Records without a key, and tombstones, are dropped and counted.
type GroupedStream[K, V any] struct {
	s    Stream[K, V]
	name string // the user's name for the grouping, "" without one
	// once is the repartitioned stream when it has a name of its own, shared by all operators of the grouping.
	once *Stream[K, V]
}

// GroupByKey groups by the key as it is. If the key may have changed since the records were partitioned, they go through
// a repartition topic named after the option [Named] or the store.
func (s Stream[K, V]) GroupByKey(opts ...Option) GroupedStream[K, V] {
	return GroupedStream[K, V]{s: s, name: operatorOpts(opts).name, once: new(Stream[K, V])}
}

// GroupBy gives every record a new key and groups by it, through a repartition topic named after the option [Named] or the
// store. A nil serde stands for the inherited one or the type's default. Tombstones of a V that is not nullable, and
// records whose new key is null, are dropped and counted.
func (s Stream[K, V]) GroupBy[J any](f func(K, V) J, key serde.Serde[J], opts ...Option) GroupedStream[J, V] {
	const operator = "GroupBy"
	name := operatorOpts(opts).name
	keyed := selectKey(s, operator, f, name)
	keyed.key = need(s.b, operator, "key", key, keyed.key)
	return GroupedStream[J, V]{s: keyed, name: name, once: new(Stream[J, V])}
}

// WindowedBy divides every group into time windows.
func (g GroupedStream[K, V]) WindowedBy(def window.Def) WindowedStream[K, V] {
	if err := def.Validate(); err != nil {
		g.s.b.fail("WindowedBy", "%w", err)
	}
	return WindowedStream[K, V]{g: g, def: def}
}

// partitioned returns the stream with its records in the partitions of their keys, repartitioned if need be. store gives
// the topic its name when the grouping has none. The counter of generated names moves even when a topic is shared.
func (g GroupedStream[K, V]) partitioned(operator, store string) Stream[K, V] {
	switch {
	case !g.s.rekeyed:
		return g.s
	case g.name == "":
		return g.s.repartitioned(operator, store, 0)
	case g.once.b == nil:
		*g.once = g.s.repartitioned(operator, g.name, 0)
	default:
		g.s.b.repartitionNames("", "")
	}
	return *g.once
}
