package streams_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/streamstest"
	"github.com/millrace-io/millrace/streams/window"
)

// start runs a topology in the driver.
func start(t *testing.T, b *streams.Builder, opts ...streamstest.Option) *streamstest.Driver {
	t.Helper()
	d, err := streamstest.New(b, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// lines prints the records of a topic of strings as "key=value@ts", nulls as "-".
func lines(t *testing.T, d *streamstest.Driver, topic string) []string {
	t.Helper()
	var all []string
	for _, r := range d.Written(topic) {
		key, value := string(r.Key), string(r.Value)
		if r.NoKey {
			key = "-"
		}
		if r.Tombstone {
			value = "-"
		}
		line := fmt.Sprintf("%s=%s@%d", key, value, r.Timestamp.UnixMilli())
		for _, h := range r.Headers {
			line += fmt.Sprintf(" %s:%s", h.Key, h.Value)
		}
		all = append(all, line)
	}
	return all
}

func expect(t *testing.T, d *streamstest.Driver, topic string, want ...string) {
	t.Helper()
	if got := lines(t, d, topic); !slices.Equal(got, want) {
		t.Errorf("topic %s:\n got %q\nwant %q", topic, got, want)
	}
}

func expectDrops(t *testing.T, d *streamstest.Driver, want map[string]int64) {
	t.Helper()
	if got := d.Dropped(); !maps.Equal(got, want) {
		t.Errorf("drops %v, want %v", got, want)
	}
}

// pipe sends "key=value@ts" to a topic; "-" is null.
func pipe(t *testing.T, d *streamstest.Driver, topic string, records ...string) {
	t.Helper()
	for _, line := range records {
		if err := d.PipeRaw(topic, parse(t, line)); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

func parse(t *testing.T, line string) streamstest.Raw {
	t.Helper()
	key, rest, _ := strings.Cut(line, "=")
	value, at, _ := strings.Cut(rest, "@")
	var ms int64
	if _, err := fmt.Sscan(at, &ms); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return streamstest.Raw{
		Key: []byte(key), Value: []byte(value), NoKey: key == "-", Tombstone: value == "-", Timestamp: time.UnixMilli(ms),
		Headers: []streamstest.Header{{Key: "h", Value: []byte(value)}},
	}
}

var nullInputs = []string{"k=v@1", "k=-@2", "-=v@3", "-=-@4", "=@5"}

// TestNullsOfTypesWithoutNull: functions of values never see a null value, a missing key shows as the zero value and
// stays missing, and empty is not null.
func TestNullsOfTypesWithoutNull(t *testing.T) {
	valuesOnly := func(k, v string) {
		if k == "k" && v != "v" {
			t.Errorf("called for the tombstone of %q", k)
		}
	}
	for _, test := range []struct {
		name  string
		build func(s streams.Stream[string, string])
		want  []string
		drops map[string]int64
	}{
		{"filter passes tombstones", func(s streams.Stream[string, string]) {
			s.Filter(func(_, v string) bool { return v == "v" }).To("out", nil, nil)
		}, []string{"k=v@1 h:v", "k=-@2 h:-", "-=v@3 h:v", "-=-@4 h:-"}, nil},
		{"filterNot passes tombstones", func(s streams.Stream[string, string]) {
			s.FilterNot(func(_, v string) bool { return v == "v" }).To("out", nil, nil)
		}, []string{"k=-@2 h:-", "-=-@4 h:-", "=@5 h:"}, nil},
		{"mapValues keeps tombstones", func(s streams.Stream[string, string]) {
			s.MapValues(func(v string) string { return v + "!" }).To("out", nil, nil)
		}, []string{"k=v!@1 h:v", "k=-@2 h:-", "-=v!@3 h:v", "-=-@4 h:-", "=!@5 h:"}, nil},
		{"map drops tombstones and makes keys", func(s streams.Stream[string, string]) {
			s.Map(func(k, v string) (string, string) { return v, k }).To("out", nil, nil)
		}, []string{"v=k@1 h:v", "v=@3 h:v", "=@5 h:"}, map[string]int64{"null-value": 2}},
		{"selectKey drops tombstones", func(s streams.Stream[string, string]) {
			s.SelectKey(func(_, v string) string { return v }).To("out", nil, nil)
		}, []string{"v=v@1 h:v", "v=v@3 h:v", "=@5 h:"}, map[string]int64{"null-value": 2}},
		{"flatMapValues drops tombstones", func(s streams.Stream[string, string]) {
			s.FlatMapValues(func(v string) []string { return []string{v, v} }).To("out", nil, nil)
		}, []string{"k=v@1 h:v", "k=v@1 h:v", "-=v@3 h:v", "-=v@3 h:v", "=@5 h:", "=@5 h:"}, map[string]int64{"null-value": 2}},
		{"flatMapValuesFunc drops tombstones", func(s streams.Stream[string, string]) {
			s.FlatMapValuesFunc(func(v string, emit func(string)) { emit(v + "1") }).To("out", nil, nil)
		}, []string{"k=v1@1 h:v", "-=v1@3 h:v", "=1@5 h:"}, map[string]int64{"null-value": 2}},
		{"flatMap drops tombstones and makes keys", func(s streams.Stream[string, string]) {
			s.FlatMap(func(k, v string, emit func(string, string)) { emit(v, k) }).To("out", nil, nil)
		}, []string{"v=k@1 h:v", "v=@3 h:v", "=@5 h:"}, map[string]int64{"null-value": 2}},
		{"peek looks at values only", func(s streams.Stream[string, string]) {
			s.Peek(valuesOnly).To("out", nil, nil)
		}, []string{"k=v@1 h:v", "k=-@2 h:-", "-=v@3 h:v", "-=-@4 h:-", "=@5 h:"}, nil},
		{"forEach drops tombstones", func(s streams.Stream[string, string]) {
			s.ForEach(valuesOnly)
		}, nil, map[string]int64{"null-value": 2}},
		{"repartition drops missing keys and keeps tombstones", func(s streams.Stream[string, string]) {
			s.Repartition("r").To("out", nil, nil)
		}, []string{"k=v@1 h:v", "k=-@2 h:-", "=@5 h:"}, map[string]int64{"repartition-null-key": 2}},
		{"toTable deletes by tombstones", func(s streams.Stream[string, string]) {
			s.ToTable("rows").ToStream().To("out", nil, nil)
		}, []string{"k=v@1 h:v", "k=-@2 h:-", "=@5 h:"}, map[string]int64{"null-key": 2}},
		{"reduce drops missing keys and tombstones", func(s streams.Stream[string, string]) {
			s.GroupByKey().Reduce("rows", func(a, v string) string { return a + v }).ToStream().To("out", nil, nil)
		}, []string{"k=v@1 h:v", "=@5 h:"}, map[string]int64{"null-key": 2, "null-value": 1}},
		{"windowed aggregate drops missing keys and tombstones", func(s streams.Stream[string, string]) {
			s.GroupByKey().WindowedBy(window.Tumbling(time.Second).Grace(0)).
				Aggregate("rows", func() string { return "<" }, func(_, v, a string) string { return a + v }, nil).
				ToStream(func(k window.Key[string]) string { return k.Key }).To("out", nil, nil)
		}, []string{"k=<v@1 h:v", "=<@5 h:"}, map[string]int64{"null-key": 2, "null-value": 1}},
		{"windowed count counts tombstones", func(s streams.Stream[string, string]) {
			s.GroupByKey().WindowedBy(window.Tumbling(time.Second).Grace(0)).Count("rows").
				MapValues(func(n int64) string { return fmt.Sprint(n) }).
				ToStream(func(k window.Key[string]) string { return k.Key }).To("out", nil, nil)
		}, []string{"k=1@1 h:v", "k=2@2 h:-", "=1@5 h:"}, map[string]int64{"null-key": 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := streams.NewBuilder()
			test.build(b.Stream("in", serde.String, serde.String))
			d := start(t, b)
			pipe(t, d, "in", nullInputs...)
			expect(t, d, "out", test.want...)
			expectDrops(t, d, test.drops)
		})
	}
}

// TestNullsOfNullableTypes: functions see nil, and nil returned is null.
func TestNullsOfNullableTypes(t *testing.T) {
	text := serde.Nullable(serde.String)
	show := func(v *string) string {
		if v == nil {
			return "null"
		}
		return *v
	}
	b := streams.NewBuilder()
	in := b.Stream("in", text, text)
	in.Filter(func(k, v *string) bool { return k == nil || v == nil }).To("filtered", nil, nil)
	in.Map(func(k, v *string) (*string, *string) { return v, k }).To("swapped", nil, nil)
	in.MapValues(func(v *string) string { return show(v) }).To("shown", nil, nil)
	in.MapValues(func(*string) []byte { return nil }).To("nothing", nil, nil)
	in.GroupByKey().Reduce("last", func(a, v *string) *string { return nil }).ToStream().To("reduced", nil, nil)
	in.GroupByKey().WindowedBy(window.Tumbling(time.Second).Grace(0)).
		Aggregate("windows", func() string { return "" }, func(_, v *string, a string) string { return a + show(v) }, nil).
		ToStream(func(k window.Key[*string]) *string { return k.Key }).To("windowed", nil, nil)
	d := start(t, b)
	pipe(t, d, "in", "k=v@1", "k=-@2", "-=v@3", "-=-@4", "k=w@5")
	expect(t, d, "filtered", "k=-@2 h:-", "-=v@3 h:v", "-=-@4 h:-")
	expect(t, d, "swapped", "v=k@1 h:v", "-=k@2 h:-", "v=-@3 h:v", "-=-@4 h:-", "w=k@5 h:w")
	expect(t, d, "shown", "k=v@1 h:v", "k=null@2 h:-", "-=v@3 h:v", "-=null@4 h:-", "k=w@5 h:w")
	expect(t, d, "nothing", "k=-@1 h:v", "k=-@2 h:-", "-=-@3 h:v", "-=-@4 h:-", "k=-@5 h:w")
	expect(t, d, "reduced", "k=v@1 h:v", "k=-@5 h:w")
	expect(t, d, "windowed", "k=v@1 h:v", "k=vnull@2 h:-", "k=vnullw@5 h:w")
}

func TestAggregatesDeleteRows(t *testing.T) {
	b := streams.NewBuilder()
	g := b.Stream("in", serde.String, serde.String).GroupByKey()
	g.ReduceOrDelete("reduced", func(a, v string) (string, bool) { return a + v, v != "x" }).
		Filter(func(_, v string) bool { return len(v) > 1 }).ToStream().To("out", nil, nil)
	g.AggregateOrDelete("aggregated", func() string { return "<" }, func(_, v, a string) (string, bool) { return a + v, v != "x" }, nil).
		ToStream().To("folded", nil, nil)
	d := start(t, b)
	pipe(t, d, "in", "k=a@5", "k=b@3", "k=x@4", "k=x@1", "k=c@2")
	// The filter sends nothing while a row matches neither before nor after.
	expect(t, d, "out", "k=ab@5 h:b", "k=-@5 h:x", "k=xc@2 h:c")
	expect(t, d, "folded", "k=<a@5 h:a", "k=<ab@5 h:b", "k=-@5 h:x", "k=-@1 h:x", "k=<c@2 h:c")
	if got := len(d.Written("app-reduced-changelog")); got != 5 {
		t.Errorf("%d changelog records, want one a commit", got)
	}
}

// TestInitialValueIsTheOldValue: what Kafka Streams does for a filter above an aggregate whose initial value matches.
func TestInitialValueIsTheOldValue(t *testing.T) {
	b := streams.NewBuilder()
	g := b.Stream("in", serde.String, serde.String).GroupByKey()
	g.Count("counts").Filter(func(_ string, n int64) bool { return n != 1 }).
		MapValues(func(n int64) string { return fmt.Sprint(n) }).ToStream().To("not-one", nil, nil)
	g.Aggregate("texts", func() string { return "" }, func(_, v, a string) string { return a + v }, nil).
		Filter(func(_, v string) bool { return v != "" }).ToStream().To("texts", nil, nil)
	d := start(t, b)
	pipe(t, d, "in", "k=@1", "k=a@2")
	expect(t, d, "not-one", "k=-@1 h:", "k=2@2 h:a")
	expect(t, d, "texts", "k=a@2 h:a")
}

func TestWindowsAndLateness(t *testing.T) {
	b := streams.NewBuilder()
	b.Stream("in", serde.String, serde.String).GroupByKey().
		WindowedBy(window.Hopping(10*time.Millisecond, 5*time.Millisecond).Grace(2*time.Millisecond)).
		Reduce("rows", func(a, v string) string { return a + v }).
		ToStream(func(k window.Key[string]) string { return k.String() }).To("out", nil, nil)
	d := start(t, b)
	pipe(t, d, "in", "k=a@7", "other=b@16", "k=c@8", "k=d@9")
	expect(t, d, "out",
		"[k@0/10]=a@7 h:a", "[k@5/15]=a@7 h:a",
		"[other@10/20]=b@16 h:b", "[other@15/25]=b@16 h:b",
		"[k@5/15]=ac@8 h:c", "[k@5/15]=acd@9 h:d")
	expectDrops(t, d, map[string]int64{"late": 2})
}

func TestWindowedKeysLeaveInKafkasBytes(t *testing.T) {
	b := streams.NewBuilder()
	b.Stream("in", serde.String, serde.String).GroupByKey().
		WindowedBy(window.Tumbling(10*time.Millisecond).Grace(0)).Count("rows").
		ToStream(func(k window.Key[string]) window.Key[string] { return k }).To("out", nil, nil)
	d := start(t, b)
	pipe(t, d, "in", "a=x@25")
	if got, want := string(d.Written("out")[0].Key), "a\x00\x00\x00\x00\x00\x00\x00\x14"; got != want {
		t.Errorf("key %q, want %q", got, want)
	}
}

func TestTableChainsSeeOldValues(t *testing.T) {
	b := streams.NewBuilder()
	table := b.Table("in", serde.String, serde.String, "rows")
	table.MapValues(strings.ToUpper).Filter(func(_, v string) bool { return strings.HasPrefix(v, "A") }).ToStream().To("kept", nil, nil)
	b.Table("in2", serde.String, serde.String, "").Filter(func(_, v string) bool { return v == "a" }).ToStream().To("passed", nil, nil)
	d := start(t, b)
	pipe(t, d, "in", "k=b@1", "k=a@2", "k=c@3", "k=-@4", "-=x@5")
	pipe(t, d, "in2", "k=b@1", "k=a@2")
	expect(t, d, "kept", "k=A@2 h:a", "k=-@3 h:c")
	expect(t, d, "passed", "k=-@1 h:b", "k=a@2 h:a") // without rows nobody knows that b did not match before
	expectDrops(t, d, map[string]int64{"null-key": 1})
}

func TestFailingFunctions(t *testing.T) {
	bad := errors.New("bad value")
	check := func(v string) error {
		if v == "bad" {
			return bad
		}
		return nil
	}
	for name, build := range map[string]func(s streams.Stream[string, string]){
		"TryMap": func(s streams.Stream[string, string]) {
			s.TryMap(func(k, v string) (string, string, error) { return k, v, check(v) }).To("out", nil, nil)
		},
		"TryMapValues": func(s streams.Stream[string, string]) {
			s.TryMapValues(func(v string) (string, error) { return v, check(v) }).To("out", nil, nil)
		},
		"TryFlatMapValues": func(s streams.Stream[string, string]) {
			s.TryFlatMapValues(func(v string) ([]string, error) { return []string{v}, check(v) }).To("out", nil, nil)
		},
		"TryForEach": func(s streams.Stream[string, string]) {
			s.TryForEach(func(_, v string) error { return check(v) })
			s.Filter(func(_, v string) bool { return v != "bad" }).To("out", nil, nil)
		},
		"panic": func(s streams.Stream[string, string]) {
			s.MapValues(func(v string) string {
				if err := check(v); err != nil {
					panic(err)
				}
				return v
			}).To("out", nil, nil)
		},
		"panic behind emit": func(s streams.Stream[string, string]) {
			s.FlatMapValuesFunc(func(v string, emit func(string)) {
				emit(v)
			}).MapValues(func(v string) string {
				if err := check(v); err != nil {
					panic(err)
				}
				return v
			}, streams.Named("culprit")).To("out", nil, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := streams.NewBuilder()
			build(b.Stream("in", serde.String, serde.String))
			d := start(t, b)
			pipe(t, d, "in", "k=a@1")
			err := d.PipeRaw("in", parse(t, "k=bad@2"))
			failure, ok := errors.AsType[*streams.Error](err)
			if !ok || !errors.Is(err, bad) || failure.Kind != streams.KindProcess || failure.Topic != "in" || failure.Offset != 1 {
				t.Errorf("got %v, want a process failure at in-0 offset 1", err)
			}
			if name == "panic behind emit" && failure.Operator != "culprit" {
				t.Errorf("the panic is attributed to %q", failure.Operator)
			}

			skipping := start(t, b, streamstest.OnProcessError(func(*streams.Error, streams.RawRecord) streams.Decision { return streams.Skip }))
			pipe(t, skipping, "in", "k=a@1", "k=bad@2", "k=b@3")
			expect(t, skipping, "out", "k=a@1 h:a", "k=b@3 h:b")
			expectDrops(t, skipping, map[string]int64{"process-error": 1})
		})
	}
}

func TestDecodeErrorHandler(t *testing.T) {
	b := streams.NewBuilder()
	b.Stream("in", serde.String, serde.Int64, streams.Named("numbers")).
		MapValues(func(n int64) string { return fmt.Sprint(n) }).To("out", nil, nil)
	err := start(t, b).PipeRaw("in", parse(t, "k=abc@1"))
	failure, ok := errors.AsType[*streams.Error](err)
	if !ok || failure.Kind != streams.KindDecode || failure.Operator != "numbers" || !strings.Contains(err.Error(), "value: decode int64: want 8 bytes, got 3") {
		t.Fatalf("got %v, want a decode failure in operator numbers", err)
	}
	d := start(t, b, streamstest.OnDecodeError(func(_ *streams.Error, r streams.RawRecord) streams.Decision {
		if string(r.Value) != "abc" {
			t.Errorf("the handler saw %q", r.Value)
		}
		return streams.Skip
	}))
	pipe(t, d, "in", "k=abc@1", "k=\x00\x00\x00\x00\x00\x00\x00\x07@2")
	expect(t, d, "out", "k=7@2 h:\x00\x00\x00\x00\x00\x00\x00\x07")
	expectDrops(t, d, map[string]int64{"decode-error": 1})
}

// failing cannot encode the value "bad".
type failing struct{ serde.Serde[string] }

var errEncode = errors.New("cannot be encoded")

func (f failing) Append(dst []byte, v string) ([]byte, error) {
	if v == "bad" {
		return dst, errEncode
	}
	return f.Serde.Append(dst, v)
}

func TestUnencodableResult(t *testing.T) {
	b := streams.NewBuilder()
	in := b.Stream("in", serde.String, serde.String)
	in.To("out", failing{serde.String}, failing{serde.String})
	in.To("copy", nil, nil)
	d := start(t, b)
	if err := d.PipeRaw("in", parse(t, "k=bad@1")); !errors.Is(err, errEncode) {
		t.Fatalf("got %v, want the encoder's error", err)
	}
	d = start(t, b, streamstest.OnProcessError(func(*streams.Error, streams.RawRecord) streams.Decision { return streams.Skip }))
	pipe(t, d, "in", "k=bad@1", "bad=v@2", "k=v@3")
	expect(t, d, "out", "k=v@3 h:v")
	expect(t, d, "copy", "k=bad@1 h:bad", "bad=v@2 h:v", "k=v@3 h:v") // siblings go on
	expectDrops(t, d, map[string]int64{"process-error": 2})
}
