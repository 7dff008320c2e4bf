package streams_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/window"
)

// TestEveryChainCompiles exists for its compilation: a method that led from a type back to itself with a wrapped type
// parameter (a window key, a change, a slice) would be rejected as an instantiation cycle, here and not at a user's.
// Every operator is entered from every type that offers it and left to every type that it leads to.
func TestEveryChainCompiles(t *testing.T) {
	b := streams.NewBuilder()
	lines := b.Stream("lines", serde.Bytes, serde.String)
	def := window.Tumbling(time.Minute).Grace(time.Second)

	words := lines.
		Filter(func([]byte, string) bool { return true }).
		FilterNot(func([]byte, string) bool { return false }).
		Peek(func([]byte, string) {}).
		FlatMapValues(strings.Fields).
		TryFlatMapValues(func(s string) ([]string, error) { return []string{s}, nil }).
		FlatMapValuesFunc(func(s string, emit func(string)) { emit(s) }).
		MapValues(strings.ToUpper).
		MapValuesWithKey(func(_ []byte, s string) string { return s }).
		TryMapValues(func(s string) (string, error) { return s, nil }).
		Map(func(k []byte, s string) (string, int64) { return s, int64(len(k)) }).
		TryMap(func(s string, n int64) (string, int64, error) { return s, n, nil }).
		FlatMap(func(s string, n int64, emit func(string, int64)) { emit(s, n) }).
		SelectKey(func(s string, _ int64) string { return s }).
		WithKeySerde(serde.String).WithValueSerde(serde.Int64).
		Repartition("words", streams.Partitions(3))
	words = words.Merge(words)
	words.ForEach(func(string, int64) {})
	words.TryForEach(func(string, int64) error { return nil })

	// Stream -> grouped -> table -> stream -> grouped by another type.
	counts := words.GroupByKey().Count("counts")
	byCount := counts.
		Filter(func(string, int64) bool { return true }).
		FilterNot(func(string, int64) bool { return false }).
		MapValues(func(n int64) *int64 { return &n }).
		ToStream().
		GroupBy(func(s string, _ *int64) int64 { return int64(len(s)) }, serde.Int64)
	byCount.Reduce("reduced", func(_, v *int64) *int64 { return v }).ToStream().To("out", nil, nil)
	byCount.ReduceOrDelete("reduced-or-deleted", func(_, v *int64) (*int64, bool) { return v, true })
	byCount.Aggregate("aggregated", func() string { return "" }, func(int64, *int64, string) string { return "" }, nil)
	byCount.AggregateOrDelete("aggregated-or-deleted", func() []byte { return nil },
		func(int64, *int64, []byte) ([]byte, bool) { return nil, false }, serde.Bytes)

	// Stream -> grouped -> windowed -> windowed table -> stream, leaving with the window key itself or with another.
	windows := words.GroupByKey().WindowedBy(def)
	windows.Reduce("windowed-reduced", func(_, v int64) int64 { return v })
	windows.Aggregate("windowed-aggregated", func() string { return "" }, func(string, int64, string) string { return "" }, nil)
	windowed := windows.Count("windowed").MapValues(func(n int64) string { return strings.Repeat("x", int(n)) })
	byWindow := windowed.ToStream(func(k window.Key[string]) window.Key[string] { return k })
	byWindow.To("windows", nil, nil)
	windowed.ToStream(func(k window.Key[string]) int64 { return k.Start }).GroupByKey().Count("by-start")

	// A windowed key is a key like any other, so windows can be taken of windows.
	again := byWindow.GroupByKey().WindowedBy(def).Count("windows-of-windows")
	again.ToStream(func(k window.Key[window.Key[string]]) string { return k.Key.Key }).ToTable("last").ToStream()

	// Table sources, with and without a store.
	table := b.Table("table", serde.String, serde.String, "rows")
	_ = table.Ref()
	_ = windowed.Ref()
	b.Table("other", serde.String, serde.String, "").ToStream().ToTable("")

	if _, err := b.Build("app"); err != nil {
		t.Fatal(err)
	}
}
