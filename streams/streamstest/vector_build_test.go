package streamstest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/window"
)

// result is what a statement defines: one of the DSL's types over any, with the kinds of its keys and values.
type result struct {
	op         any
	key, value kind
}

// The DSL types that statements refer to.
type (
	stream         = streams.Stream[any, any]
	table          = streams.Table[any, any]
	countTable     = streams.Table[any, int64]
	grouped        = streams.GroupedStream[any, any]
	windowedStream = streams.WindowedStream[any, any]
	windowedTable  = streams.WindowedTable[any, any]
)

// outputTopic says how to read a topic that the topology writes.
type outputTopic struct {
	key, value kind
	window     time.Duration // of windowed keys, 0 otherwise
}

// vectorBuilder turns statements into calls of the DSL.
type vectorBuilder struct {
	b        *streams.Builder
	topology []statement
	results  map[string]result
	inputs   map[string]result // kinds of the source topics
	outputs  map[string]outputTopic
}

func newVectorBuilder(topology []statement, opts []streams.BuilderOption) *vectorBuilder {
	return &vectorBuilder{b: streams.NewBuilder(opts...), topology: topology,
		results: map[string]result{}, inputs: map[string]result{}, outputs: map[string]outputTopic{}}
}

// operator is a kind of statement: the fields that it may have, and what it calls.
type operator struct {
	fields []string
	build  func(*vectorBuilder, statement) result
}

// operators is the table of what is covered. A statement with another field is not.
var operators = map[string]operator{
	"stream":           {[]string{"topic", "topics", "key_type", "value_type", "name"}, (*vectorBuilder).stream},
	"table":            {[]string{"topic", "key_type", "value_type", "materialized"}, (*vectorBuilder).table},
	"filter":           {[]string{"input", "fn", "name"}, (*vectorBuilder).filter},
	"filter_not":       {[]string{"input", "fn", "name"}, (*vectorBuilder).filterNot},
	"map":              {[]string{"input", "fn", "name"}, (*vectorBuilder).mapPairs},
	"map_values":       {[]string{"input", "fn", "name"}, (*vectorBuilder).mapValues},
	"flat_map":         {[]string{"input"}, (*vectorBuilder).flatMap},
	"flat_map_values":  {[]string{"input"}, (*vectorBuilder).flatMapValues},
	"select_key":       {[]string{"input", "fn", "name"}, (*vectorBuilder).selectKey},
	"merge":            {[]string{"inputs"}, (*vectorBuilder).merge},
	"peek":             {[]string{"input"}, (*vectorBuilder).peek},
	"repartition":      {[]string{"input", "name", "partitions", "key_type", "value_type"}, (*vectorBuilder).repartition},
	"to_table":         {[]string{"input", "materialized", "key_type", "value_type"}, (*vectorBuilder).toTable},
	"group_by_key":     {[]string{"input", "name", "key_type", "value_type"}, (*vectorBuilder).groupByKey},
	"group_by":         {[]string{"input", "fn", "name", "key_type", "value_type"}, (*vectorBuilder).groupBy},
	"windowed_by":      {[]string{"input", "window"}, (*vectorBuilder).windowedBy},
	"count":            {[]string{"input", "materialized"}, (*vectorBuilder).count},
	"reduce":           {[]string{"input", "fn", "materialized", "value_type"}, (*vectorBuilder).reduce},
	"aggregate":        {[]string{"input", "init", "fn", "materialized", "result_type"}, (*vectorBuilder).aggregate},
	"table_filter":     {[]string{"input", "fn"}, (*vectorBuilder).tableFilter},
	"table_filter_not": {[]string{"input", "fn"}, (*vectorBuilder).tableFilterNot},
	"table_map_values": {[]string{"input", "fn"}, (*vectorBuilder).tableMapValues},
	"to_stream":        {[]string{"input"}, (*vectorBuilder).toStream},
	"to":               {[]string{"input", "topic", "key_type", "value_type"}, (*vectorBuilder).to},
}

// build makes the topology. missing says what a vector needs that does not exist.
func (v *vectorBuilder) build() (missing string) {
	defer func() {
		if p := recover(); p != nil {
			reason, ok := p.(notCovered)
			if !ok {
				panic(p)
			}
			missing = string(reason)
		}
	}()
	for _, s := range v.topology {
		op, ok := operators[s.text("op")]
		if !ok {
			return "op " + s.text("op")
		}
		for _, field := range slices.Sorted(maps.Keys(s)) {
			if field != "op" && field != "id" && !slices.Contains(op.fields, field) {
				return fmt.Sprintf("option %s of op %s", field, s.text("op"))
			}
		}
		v.results[s.text("id")] = op.build(v, s)
	}
	return ""
}

// input is what an earlier statement defined, as the type that the operator exists on.
func input[T any](v *vectorBuilder, s statement) (T, result) {
	r, ok := v.results[s.text("input")]
	if !ok {
		panic(fmt.Sprintf("statement %v refers to an unknown id", s))
	}
	typed, ok := r.op.(T)
	if !ok {
		panic(notCovered(fmt.Sprintf("op %s on %s", s.text("op"), typeName(r.op))))
	}
	return typed, r
}

// typeName is a DSL type without package and type parameters.
func typeName(v any) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprintf("%T", v), "streams."), "[")
	return name
}

func named(s statement) []streams.Option {
	if name := s.text("name"); name != "" {
		return []streams.Option{streams.Named(name)}
	}
	return nil
}

// materialized reads a store's name and options. Generated names are on, so that an empty name is fine.
func materialized(s statement) (store string, opts []streams.StoreOption) {
	m := s.sub("materialized")
	for field, value := range m {
		switch field {
		case "store":
			store = m.text("store")
		case "retention_ms":
			opts = append(opts, streams.Retention(time.Duration(m.number("retention_ms"))*time.Millisecond))
		case "logging":
			if value == false {
				opts = append(opts, streams.NotLogged())
			}
		default:
			panic(notCovered("materialized option " + field))
		}
	}
	return store, opts
}

// typed gives a stream the serdes of its kinds: all values travel as any, so the DSL cannot tell when they change.
func typed(s stream, key, value kind) result {
	return result{s.WithKeySerde(key.serde()).WithValueSerde(value.serde()), key, value}
}

func (v *vectorBuilder) stream(s statement) result {
	topics := s.texts("topics")
	if topic := s.text("topic"); topic != "" {
		topics = append(topics, topic)
	}
	r := result{key: s.kind("key_type"), value: s.kind("value_type")}
	for _, topic := range topics {
		v.inputs[topic] = r
	}
	r.op = v.b.StreamTopics(topics, r.key.serde(), r.value.serde(), named(s)...)
	return r
}

func (v *vectorBuilder) table(s statement) result {
	r := result{key: s.kind("key_type"), value: s.kind("value_type")}
	v.inputs[s.text("topic")] = r
	store, opts := materialized(s)
	r.op = v.b.Table(s.text("topic"), r.key.serde(), r.value.serde(), store, opts...)
	return r
}

func (v *vectorBuilder) filter(s statement) result {
	in, r := input[stream](v, s)
	return typed(in.Filter(s.fn("fn").predicate(), named(s)...), r.key, r.value)
}

func (v *vectorBuilder) filterNot(s statement) result {
	in, r := input[stream](v, s)
	return typed(in.FilterNot(s.fn("fn").predicate(), named(s)...), r.key, r.value)
}

func (v *vectorBuilder) mapPairs(s statement) result {
	in, r := input[stream](v, s)
	p := s.fn("fn").pair()
	mapped := in.TryMap(func(k, value any) (j, w any, err error) {
		defer asError(&err)
		j, w = p.apply(k, value)
		return j, w, nil
	}, named(s)...)
	return typed(mapped, p.key(r.key, r.value), p.value(r.key, r.value))
}

// asError is what a function that can fail does with a panic of the catalogue's functions: the handler then decides about this
// operator alone, as it does in Java. A panic that reaches the task leaves out the rest of the record.
func asError(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%v", p)
	}
}

func (v *vectorBuilder) mapValues(s statement) result {
	in, r := input[stream](v, s)
	f := s.fn("fn")
	m := f.mapper()
	if strings.HasPrefix(f.name, "key") {
		return typed(in.MapValuesWithKey(m.apply, named(s)...), r.key, m.out(r.key, r.value))
	}
	mapped := in.TryMapValues(func(value any) (w any, err error) {
		defer asError(&err)
		return m.apply(nil, value), nil
	}, named(s)...)
	return typed(mapped, r.key, m.out(r.key, r.value))
}

func (v *vectorBuilder) flatMap(s statement) result {
	in, r := input[stream](v, s)
	return typed(in.FlatMap(func(_, value any, emit func(any, any)) {
		for _, word := range words(value) {
			emit(word, value)
		}
	}), kindString, r.value)
}

func (v *vectorBuilder) flatMapValues(s statement) result {
	in, r := input[stream](v, s)
	return typed(in.FlatMapValues(func(value any) []any {
		if value == nil {
			return nil
		}
		return words(value)
	}), r.key, kindString)
}

func (v *vectorBuilder) selectKey(s statement) result {
	in, r := input[stream](v, s)
	m := s.fn("fn").mapper()
	return typed(in.SelectKey(m.apply, named(s)...), m.out(r.key, r.value), r.value)
}

func (v *vectorBuilder) merge(s statement) result {
	ids := s.texts("inputs")
	in, r := input[stream](v, statement{"op": "merge", "input": ids[0]})
	for _, id := range ids[1:] {
		other, _ := input[stream](v, statement{"op": "merge", "input": id})
		in = in.Merge(other)
	}
	return typed(in, r.key, r.value)
}

func (v *vectorBuilder) peek(s statement) result {
	in, r := input[stream](v, s)
	return typed(in.Peek(func(_, _ any) {}), r.key, r.value)
}

func (v *vectorBuilder) repartition(s statement) result {
	in, r := input[stream](v, s)
	var opts []streams.RepartitionOption
	if n := s.number("partitions"); n > 0 {
		opts = append(opts, streams.Partitions(int32(n)))
	}
	return typed(in.Repartition(s.text("name"), opts...), r.key, r.value)
}

func (v *vectorBuilder) toTable(s statement) result {
	in, r := input[stream](v, s)
	store, opts := materialized(s)
	return result{in.ToTable(store, opts...), r.key, r.value}
}

func (v *vectorBuilder) groupByKey(s statement) result {
	in, r := input[stream](v, s)
	return result{in.GroupByKey(named(s)...), r.key, r.value}
}

func (v *vectorBuilder) groupBy(s statement) result {
	in, r := input[stream](v, s)
	m := s.fn("fn").mapper()
	key := m.out(r.key, r.value)
	return result{in.GroupBy(m.apply, key.serde(), named(s)...), key, r.value}
}

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
