package streamstest_test

import (
	"fmt"
	"strings"

	"github.com/millrace-io/millrace/streams"
)

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
