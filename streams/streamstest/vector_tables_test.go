package streamstest_test

import (
	"slices"
	"strings"
	"time"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/window"
)

func (v *vectorBuilder) windowedBy(s statement) result {
	in, r := input[grouped](v, s)
	w := s.sub("window")
	ms := func(field string) time.Duration { return time.Duration(w.number(field)) * time.Millisecond }
	switch w.text("type") {
	case "tumbling":
		return result{in.WindowedBy(window.Tumbling(ms("size_ms")).Grace(ms("grace_ms"))), r.key, r.value}
	case "hopping":
		return result{in.WindowedBy(window.Hopping(ms("size_ms"), ms("advance_ms")).Grace(ms("grace_ms"))), r.key, r.value}
	}
	panic(notCovered("window " + w.text("type")))
}

// count is Count, unless its rows reach an operator of a stream: there Count's int64 would hide nulls from functions, which
// Java's Long does not. Aggregate does the same then, but the counter of generated names differs by one.
func (v *vectorBuilder) count(s statement) result {
	if v.reachesStream(s.text("id")) {
		if s.sub("materialized").text("store") == "" {
			panic(notCovered("op count without a store name before operators of a stream"))
		}
		return v.fold(s, kindInt64, func() any { return int64(0) }, function{name: "count"}.aggregator())
	}
	store, opts := materialized(s)
	if r := v.results[s.text("input")]; isWindowed(r) {
		return result{r.op.(windowedStream).Count(store, opts...), r.key, kindInt64}
	}
	in, r := input[grouped](v, s)
	return result{in.Count(store, opts...), r.key, kindInt64}
}

// reachesStream reports whether a table's rows, as they are, reach an operator of a stream other than "to".
func (v *vectorBuilder) reachesStream(id string) bool {
	return slices.ContainsFunc(v.consumers(id), func(s statement) bool {
		switch s.text("op") {
		case "table_filter", "table_filter_not":
			return v.reachesStream(s.text("id"))
		case "to_stream":
			return slices.ContainsFunc(v.consumers(s.text("id")), func(s statement) bool { return s.text("op") != "to" })
		}
		return false
	})
}

func (v *vectorBuilder) consumers(id string) []statement {
	var all []statement
	for _, s := range v.topology {
		if s.text("input") == id || slices.Contains(s.texts("inputs"), id) {
			all = append(all, s)
		}
	}
	return all
}

func isWindowed(r result) bool {
	_, ok := r.op.(windowedStream)
	return ok
}

func (v *vectorBuilder) reduce(s statement) result {
	store, opts := materialized(s)
	if r := v.results[s.text("input")]; isWindowed(r) {
		return result{r.op.(windowedStream).Reduce(store, s.fn("fn").reducer(), opts...), r.key, r.value}
	}
	in, r := input[grouped](v, s)
	return result{in.Reduce(store, s.fn("fn").reducer(), opts...), r.key, r.value}
}

func (v *vectorBuilder) aggregate(s statement) result {
	initial := plain(s["init"])
	return v.fold(s, s.kind("result_type"), func() any { return initial }, s.fn("fn").aggregator())
}

func (v *vectorBuilder) fold(s statement, value kind, initial func() any, add func(k, v, aggregate any) any) result {
	store, opts := materialized(s)
	if r := v.results[s.text("input")]; isWindowed(r) {
		return result{r.op.(windowedStream).Aggregate(store, initial, add, value.serde(), opts...), r.key, value}
	}
	in, r := input[grouped](v, s)
	return result{in.Aggregate(store, initial, add, value.serde(), opts...), r.key, value}
}

func (v *vectorBuilder) tableFilter(s statement) result    { return v.filterTable(s, true) }
func (v *vectorBuilder) tableFilterNot(s statement) result { return v.filterTable(s, false) }

func (v *vectorBuilder) filterTable(s statement, keep bool) result {
	test := s.fn("fn").predicate()
	if r := v.results[s.text("input")]; isCounts(r) {
		counts := r.op.(countTable)
		return result{counts.Filter(func(k any, n int64) bool { return test(k, n) == keep }), r.key, r.value}
	}
	in, r := input[table](v, s)
	if !keep {
		return result{in.FilterNot(test), r.key, r.value}
	}
	return result{in.Filter(test), r.key, r.value}
}

func isCounts(r result) bool {
	_, ok := r.op.(countTable)
	return ok
}

// tableMapValues hides the key from the function: Table.MapValues does not show it.
func (v *vectorBuilder) tableMapValues(s statement) result {
	f := s.fn("fn")
	if strings.HasPrefix(f.name, "key") {
		panic(notCovered("op table_map_values with a function of the key"))
	}
	m := f.mapper()
	if r := v.results[s.text("input")]; isCounts(r) {
		return result{r.op.(countTable).MapValues(func(n int64) any { return m.apply(nil, n) }), r.key, m.out(r.key, r.value)}
	}
	in, r := input[table](v, s)
	return result{in.MapValues(func(x any) any { return m.apply(nil, x) }), r.key, m.out(r.key, r.value)}
}

func (v *vectorBuilder) toStream(s statement) result {
	if r := v.results[s.text("input")]; isCounts(r) {
		return result{r.op.(countTable).ToStream(), r.key, r.value}
	}
	in, r := input[table](v, s)
	return typed(in.ToStream(), r.key, r.value)
}

// to writes a topic; a table is turned into a stream first, as in Java.
func (v *vectorBuilder) to(s statement) result {
	from, topic := v.results[s.text("input")], s.text("topic")
	out := outputTopic{key: from.key, value: from.value}
	key := from.key.serde()
	switch in := from.op.(type) {
	case stream:
		in.To(topic, key, from.value.serde())
	case streams.Stream[any, int64]:
		in.To(topic, key, serde.Int64)
	case table:
		in.ToStream().To(topic, key, from.value.serde())
	case countTable:
		in.ToStream().To(topic, key, serde.Int64)
	case windowedTable:
		out.window = in.Ref().WindowSize()
		in.ToStream(windowedKey).To(topic, serde.Windowed(key, out.window), from.value.serde())
	case streams.WindowedTable[any, int64]:
		out.window = in.Ref().WindowSize()
		in.ToStream(windowedKey).To(topic, serde.Windowed(key, out.window), serde.Int64)
	default:
		panic(notCovered("op to on " + typeName(from.op)))
	}
	v.outputs[topic] = out
	return result{}
}

func windowedKey(k window.Key[any]) window.Key[any] { return k }
