package streamstest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace-io/millrace/streams"
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
