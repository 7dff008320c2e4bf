package streams_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/window"
)

type order struct{ Customer string }

func TestBuildReportsEveryMistakeWithItsLine(t *testing.T) {
	b := streams.NewBuilder()
	orders := b.Stream("orders", serde.String, serde.JSON[order]())
	orders.Map(func(k string, o order) (order, order) { return o, o }).GroupByKey().Count("by-order") // no key serde
	orders.GroupByKey().Count("")                                                                     // no name
	b.Stream("orders 2", serde.String, serde.String)                                                  // bad topic
	orders.GroupByKey().WindowedBy(window.Tumbling(0).Grace(0))                                       // no size

	_, err := b.Build("app")
	if err == nil {
		t.Fatal("a topology full of mistakes was built")
	}
	for _, want := range []string{
		`build_test.go:\d+: Count: needs a key serde for streams_test.order: pass one, such as serde.JSON`,
		`build_test.go:\d+: Count: needs a name for its store`,
		`build_test.go:\d+: Stream: topic name "orders 2": character ' ' is not allowed`,
		`build_test.go:\d+: WindowedBy: window size is 0s`,
	} {
		if !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("no match for %s in:\n%v", want, err)
		}
	}
	if mistake, ok := errors.AsType[*topology.BuildError](err); !ok || mistake.Operator == "" || mistake.Call == "" {
		t.Errorf("no *BuildError with operator and call in %v", err)
	}
}

func TestBuildErrors(t *testing.T) {
	upper := func(v string) string { return strings.ToUpper(v) }
	for _, test := range []struct {
		name  string
		app   string
		build func(*streams.Builder)
		want  string
	}{
		{"nothing to read", "app", func(*streams.Builder) {}, "reads no topic"},
		{"bad application id", "my app", func(b *streams.Builder) { b.Stream("in", serde.String, serde.String) }, `application id "my app"`},
		{"two operators of one name", "app", func(b *streams.Builder) {
			b.Stream("in", serde.String, serde.String, streams.Named("x")).MapValues(upper, streams.Named("x"))
		}, `the name "x" is taken by Stream at build_test.go:`},
		{"two stores of one name", "app", func(b *streams.Builder) {
			s := b.Stream("in", serde.String, serde.String).GroupByKey()
			s.Count("counts")
			s.Count("counts")
		}, `the store name "counts" is taken at build_test.go:`},
		{"overlapping sources", "app", func(b *streams.Builder) {
			b.StreamTopics([]string{"in1", "in2"}, serde.String, serde.String)
			b.Stream("in1", serde.String, serde.String)
		}, "sources must read the same set of topics or none in common"},
		{"no topics", "app", func(b *streams.Builder) { b.StreamTopics(nil, serde.String, serde.String) }, "no topic given"},
		{"store name too long for its changelog", "app", func(b *streams.Builder) {
			b.Stream("in", serde.String, serde.String).GroupByKey().Count(strings.Repeat("x", 240))
		}, "at most 249 are allowed"},
		{"retention too short", "app", func(b *streams.Builder) {
			b.Stream("in", serde.String, serde.String).GroupByKey().
				WindowedBy(window.Tumbling(time.Minute).Grace(time.Minute)).Count("c", streams.Retention(time.Minute))
		}, "Retention(1m0s) is shorter than the window's size plus its grace, 2m0s"},
		{"repartition without a name", "app", func(b *streams.Builder) {
			b.Stream("in", serde.String, serde.String).Repartition("")
		}, "needs a name for its topic"},
		{"two repartition topics of one name", "app", func(b *streams.Builder) {
			s := b.Stream("in", serde.String, serde.String)
			s.Repartition("r")
			s.Repartition("r")
		}, "is taken by Repartition"},
		{"streams of two builders", "app", func(b *streams.Builder) {
			other := streams.NewBuilder().Stream("in2", serde.String, serde.String)
			b.Stream("in", serde.String, serde.String).Merge(other)
		}, "belongs to another Builder"},
		{"missing aggregate serde", "app", func(b *streams.Builder) {
			b.Stream("in", serde.String, serde.String).GroupByKey().
				Aggregate("a", func() order { return order{} }, func(_, _ string, o order) order { return o }, nil)
		}, "needs an aggregate serde for streams_test.order"},
		{"rekeyed table without a name", "app", func(b *streams.Builder) {
			b.Stream("in", serde.String, serde.String).SelectKey(func(_, v string) string { return v }).ToTable("")
		}, "needs the option Named or a store name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := streams.NewBuilder()
			test.build(b)
			if _, err := b.Build(test.app); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestNilFunctionIsToldWithItsLine(t *testing.T) {
	type flow = streams.Stream[string, string]
	for operator, call := range map[string]func(s flow){
		"Filter":            func(s flow) { s.Filter(nil) },
		"FilterNot":         func(s flow) { s.FilterNot(nil) },
		"Peek":              func(s flow) { s.Peek(nil) },
		"ForEach":           func(s flow) { s.ForEach(nil) },
		"TryForEach":        func(s flow) { s.TryForEach(nil) },
		"Map":               func(s flow) { s.Map[string, string](nil) },
		"TryMap":            func(s flow) { s.TryMap[string, string](nil) },
		"MapValues":         func(s flow) { s.MapValues[string](nil) },
		"MapValuesWithKey":  func(s flow) { s.MapValuesWithKey[string](nil) },
		"TryMapValues":      func(s flow) { s.TryMapValues[string](nil) },
		"FlatMap":           func(s flow) { s.FlatMap[string, string](nil) },
		"FlatMapValues":     func(s flow) { s.FlatMapValues[string](nil) },
		"TryFlatMapValues":  func(s flow) { s.TryFlatMapValues[string](nil) },
		"FlatMapValuesFunc": func(s flow) { s.FlatMapValuesFunc[string](nil) },
		"SelectKey":         func(s flow) { s.SelectKey[string](nil) },
		"GroupBy":           func(s flow) { s.GroupBy[string](nil, nil) },
		"Reduce":            func(s flow) { s.GroupByKey().Reduce("s", nil) },
		"ReduceOrDelete":    func(s flow) { s.GroupByKey().ReduceOrDelete("s", nil) },
		"Aggregate":         func(s flow) { s.GroupByKey().Aggregate("s", func() string { return "" }, nil, nil) },
		"AggregateOrDelete": func(s flow) { s.GroupByKey().AggregateOrDelete[string]("s", nil, nil, nil) },
		"ToStream":          func(s flow) { windowed(s).Count("s").ToStream[string](nil) },
		"windowed Reduce":   func(s flow) { windowed(s).Reduce("s", nil) },
		"windowed Aggregate": func(s flow) {
			windowed(s).Aggregate("s", nil, func(_, _, a string) string { return a }, nil)
		},
		"windowed table's MapValues": func(s flow) { windowed(s).Count("s").MapValues[string](nil) },
		"table's Filter":             func(s flow) { s.ToTable("s").Filter(nil) },
		"table's MapValues":          func(s flow) { s.ToTable("s").MapValues[string](nil) },
	} {
		b := streams.NewBuilder()
		call(b.Stream("in", serde.String, serde.String))
		want := `build_test.go:\d+: ` + operator[strings.LastIndexByte(operator, ' ')+1:] + `: needs a function, got nil`
		if _, err := b.Build("app"); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: got %v, want %s", operator, err, want)
		}
	}
}

func windowed(s streams.Stream[string, string]) streams.WindowedStream[string, string] {
	return s.GroupByKey().WindowedBy(window.Tumbling(time.Second).Grace(0))
}

func TestPlanHash(t *testing.T) {
	hash := func(partitions int32, store string) uint64 {
		b := streams.NewBuilder()
		b.Stream("in", serde.String, serde.String).Repartition("r", streams.Partitions(partitions)).GroupByKey().Count(store)
		plan, err := b.Build("app")
		if err != nil {
			t.Fatal(err)
		}
		return plan.Hash
	}
	if hash(3, "a") != hash(3, "a") {
		t.Error("equal topologies have different hashes")
	}
	if hash(3, "a") == hash(4, "a") || hash(3, "a") == hash(3, "b") {
		t.Error("different topologies have equal hashes")
	}
}

func TestSubtopologyIDsSurviveUnrelatedEdits(t *testing.T) {
	ids := func(edit bool) map[string]bool {
		b := streams.NewBuilder()
		if edit {
			b.Stream("aaa", serde.String, serde.String).MapValues(strings.ToUpper).GroupByKey().Count("aaa-counts")
		}
		lines := b.Stream("lines", serde.String, serde.String)
		if edit {
			lines = lines.Filter(func(string, string) bool { return true })
		}
		lines.GroupBy(func(_, v string) string { return v }, nil).Count("counts")
		plan, err := b.Build("app")
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]bool{}
		for _, sub := range plan.Subtopologies {
			all[sub.ID] = true
		}
		return all
	}
	before, after := ids(false), ids(true)
	for _, id := range []string{"lines", "counts-repartition"} {
		if !before[id] || !after[id] {
			t.Errorf("sub-topology %s: before %v, after the edit %v", id, before, after)
		}
	}
	if len(before) != 2 || len(after) != 3 {
		t.Errorf("before %v, after %v", before, after)
	}
}
