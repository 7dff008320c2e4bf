package streamstest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/streamstest"
	"github.com/millrace-io/millrace/streams/window"
)

func wordCount() *streams.Builder {
	b := streams.NewBuilder()
	b.Stream("lines", serde.Bytes, serde.String).
		FlatMapValues(strings.Fields).
		GroupBy(func(_ []byte, word string) string { return word }, serde.String).
		Count("word-counts").
		ToStream().
		To("counts", serde.String, serde.Int64)
	return b
}

func start(t *testing.T, b *streams.Builder, opts ...streamstest.Option) *streamstest.Driver {
	t.Helper()
	d, err := streamstest.New(b, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type counted = streamstest.Record[string, int64]

func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func TestWordCountEndToEnd(t *testing.T) {
	d := start(t, wordCount(), streamstest.AppID("wc"))
	lines := d.Input("lines", serde.Bytes, serde.String)
	check(t, lines.PipeValue("to be", streamstest.AtMilli(10), streamstest.WithHeader("h", []byte("1"))))
	check(t, lines.PipeValue("be", streamstest.AtMilli(7)))

	h := []streamstest.Header{{Key: "h", Value: []byte("1")}}
	got, err := d.Output("counts", serde.String, serde.Int64).ReadAll()
	check(t, err)
	want := []counted{
		{Key: "to", Value: 1, Timestamp: at(10), Headers: h},
		{Key: "be", Value: 1, Timestamp: at(10), Headers: h},
		{Key: "be", Value: 2, Timestamp: at(10)}, // the aggregate's time does not go back
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	repartitioned, err := d.Output("wc-word-counts-repartition", serde.String, serde.String).ReadAll()
	check(t, err)
	if len(repartitioned) != 3 || repartitioned[2].Key != "be" || !repartitioned[2].Timestamp.Equal(at(7)) {
		t.Errorf("repartition topic: %+v", repartitioned)
	}
	changelog, err := d.Output("wc-word-counts-changelog", serde.String, serde.Int64).ReadAll()
	check(t, err)
	want[0].Headers, want[1].Headers = nil, nil // changelog records carry none
	if diff := cmp.Diff(want, changelog); diff != "" {
		t.Errorf("changelog, -want +got:\n%s", diff)
	}

	if diff := cmp.Diff([]string{"word-counts"}, d.StoreNames()); diff != "" {
		t.Error(diff)
	}
	topics, err := d.InternalTopics()
	check(t, err)
	if len(topics) != 2 || topics[1].Name != "wc-word-counts-changelog" || topics[1].Config["cleanup.policy"] != "compact" {
		t.Errorf("internal topics: %+v", topics)
	}
}

func TestViewsReadCommittedRows(t *testing.T) {
	b := streams.NewBuilder()
	words := b.Stream("words", serde.String, serde.String).GroupByKey()
	totals := words.Count("totals")
	perMinute := words.WindowedBy(window.Tumbling(time.Minute).Grace(0)).Count("per-minute")
	unkept := totals.MapValues(func(n int64) int64 { return -n })
	d := start(t, b)
	in := d.Input("words", serde.String, serde.String)
	for _, ms := range []int64{1, 60_001, 60_002} {
		check(t, in.Pipe("be", "x", streamstest.AtMilli(ms)))
	}
	check(t, in.Pipe("to", "x", streamstest.AtMilli(60_003)))

	view, err := d.View(totals.Ref())
	check(t, err)
	if n, ok, err := view.Get("be"); !ok || err != nil || n != 3 {
		t.Errorf("be: %d, %v, %v; want 3", n, ok, err)
	}
	if _, ok, err := view.Get("absent"); ok || err != nil {
		t.Errorf("absent: %v, %v", ok, err)
	}
	got := map[string]int64{}
	rows, failed := view.All()
	for k, n := range rows {
		got[k] = n
	}
	check(t, failed())
	if diff := cmp.Diff(map[string]int64{"be": 3, "to": 1}, got); diff != "" {
		t.Error(diff)
	}

	windows, err := d.ViewWindows(perMinute.Ref())
	check(t, err)
	if n, ok, err := windows.Get("be", at(60_000)); !ok || err != nil || n != 2 {
		t.Errorf("be in the second minute: %d, %v, %v; want 2", n, ok, err)
	}
	if _, err := d.View(unkept.Ref()); !errors.Is(err, streams.ErrUnknownStore) || !strings.Contains(err.Error(), "per-minute, totals") {
		t.Errorf("a table without store: %v, want an error that names the stores", err)
	}
}

func TestTimeIsVirtual(t *testing.T) {
	b := streams.NewBuilder()
	b.Stream("in", serde.String, serde.String).To("out", nil, nil)
	d := start(t, b, streamstest.StartAt(at(1000)))
	in := d.Input("in", serde.String, serde.String)
	check(t, in.Pipe("k", "a"))
	d.Advance(5 * time.Millisecond)
	check(t, in.Pipe("k", "b"))
	check(t, in.Pipe("k", "c", streamstest.At(at(3))))
	var times []int64
	for _, r := range d.Written("out") {
		times = append(times, r.Timestamp.UnixMilli())
	}
	if diff := cmp.Diff([]int64{1000, 1005, 3}, times); diff != "" || !d.Now().Equal(at(1005)) {
		t.Errorf("now %v, %s", d.Now(), diff)
	}
}

func TestNulls(t *testing.T) {
	b := streams.NewBuilder()
	b.Stream("in", serde.String, serde.String).To("out", nil, nil)
	b.Stream("nullable", serde.Nullable(serde.String), serde.Bytes).To("out", nil, nil)
	d := start(t, b)
	in := d.Input("in", serde.String, serde.String)
	check(t, in.PipeValue("v"))
	check(t, in.PipeTombstone("k"))
	check(t, in.PipeRecord(streamstest.Record[string, string]{NoKey: true, Tombstone: true, Timestamp: at(1)}))
	check(t, in.Pipe("", "")) // empty is not null
	nullable := d.Input("nullable", serde.Nullable(serde.String), serde.Bytes)
	check(t, nullable.Pipe(nil, nil))
	check(t, nullable.Pipe(new("k"), []byte{}))
	out := d.Output("out", serde.String, serde.String)
	var shape []string
	for out.Len() > 0 {
		r, err := out.Read()
		check(t, err)
		shape = append(shape, map[bool]string{true: "null", false: "'" + r.Key + "'"}[r.NoKey]+"="+map[bool]string{true: "null", false: "'" + r.Value + "'"}[r.Tombstone])
	}
	want := []string{"null='v'", "'k'=null", "null=null", "''=''", "null=null", "'k'=''"}
	if diff := cmp.Diff(want, shape); diff != "" {
		t.Error(diff)
	}
}

func TestAnErrorStopsTheTopologyAndIsUndone(t *testing.T) {
	b := streams.NewBuilder()
	b.Stream("in", serde.String, serde.Int64).GroupByKey().
		Reduce("sums", func(a, v int64) int64 {
			if a+v > 10 {
				panic("too much")
			}
			return a + v
		}).ToStream().To("out", nil, nil)
	d := start(t, b)
	in := d.Input("in", serde.String, serde.Int64)
	check(t, in.Pipe("k", 6))
	err := in.Pipe("k", 5)
	failure, ok := errors.AsType[*streams.Error](err)
	if !ok || failure.Topic != "in" || failure.Offset != 1 || !strings.Contains(err.Error(), "too much") {
		t.Fatalf("%v, want a *streams.Error with coordinates", err)
	}
	if again := in.Pipe("k", 1); again == nil || !errors.Is(again, failure.Err) || !errors.Is(d.Err(), failure.Err) {
		t.Errorf("after the failure: %v", again)
	}
	if n := len(d.Written("out")); n != 1 {
		t.Errorf("%d records written, want 1", n)
	}
}

func TestHandlersDecideAndDropsAreCounted(t *testing.T) {
	var seen []string
	skip := func(e *streams.Error, r streams.RawRecord) streams.Decision {
		seen = append(seen, string(r.Value))
		return streams.Skip
	}
	b := streams.NewBuilder()
	b.Stream("in", serde.String, serde.Int64).
		TryMapValues(func(v int64) (int64, error) {
			if v < 0 {
				return 0, errors.New("negative")
			}
			return v, nil
		}).To("out", nil, nil)
	d := start(t, b, streamstest.OnDecodeError(skip), streamstest.OnProcessError(skip))
	check(t, d.PipeRaw("in", streamstest.Raw{NoKey: true, Value: []byte("short"), Timestamp: at(1)}))
	check(t, d.Input("in", serde.String, serde.Int64).Pipe("k", -1))
	check(t, d.Input("in", serde.String, serde.Int64).Pipe("k", 1))
	if diff := cmp.Diff(map[string]int64{"decode-error": 1, "process-error": 1}, d.Dropped()); diff != "" {
		t.Error(diff)
	}
	if len(seen) != 2 || seen[0] != "short" || len(d.Written("out")) != 1 {
		t.Errorf("handlers saw %q, %d records written", seen, len(d.Written("out")))
	}
}

func TestMistakesAreNamed(t *testing.T) {
	if _, err := streamstest.New(streams.NewBuilder()); err == nil {
		t.Error("an empty topology was accepted")
	}
	d := start(t, wordCount())
	if err := d.Input("line", serde.String, serde.String).Pipe("", "x"); err == nil || !strings.Contains(err.Error(), `"line" is no source`) || !strings.Contains(err.Error(), "lines") {
		t.Errorf("unknown topic: %v", err)
	}
	out := d.Output("counts", serde.Int64, serde.Int64)
	if _, err := out.Read(); !errors.Is(err, streamstest.ErrNoRecord) {
		t.Errorf("nothing written: %v", err)
	}
	check(t, d.Input("lines", serde.Bytes, serde.String).PipeValue("a b"))
	if _, err := out.ReadAll(); err == nil || !strings.Contains(err.Error(), "record 0: decode the key") {
		t.Errorf("wrong serde: %v", err)
	}
	if out.Len() != 1 {
		t.Errorf("%d records left, want the one behind the undecodable one", out.Len())
	}
}
