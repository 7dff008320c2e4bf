package streams_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/window"
)

// What a running application has counted by window can be asked for, once it is committed.
func TestViewOfWindows(t *testing.T) {
	f := newFixture(t)
	b := streams.NewBuilder()
	perMinute := b.Stream(f.lines, serde.Bytes, serde.String).
		GroupBy(func(_ []byte, w string) string { return w }, serde.String).
		WindowedBy(window.Tumbling(time.Minute).Grace(time.Minute)).
		Count("per-minute")
	app := f.start(b, f.config("wc-0"))
	app.untilSpread(4)
	minute := time.Now().Truncate(time.Minute)
	next := minute.Add(time.Minute)
	for _, at := range []time.Time{minute, minute.Add(time.Second), next} {
		f.produceRecord(&kgo.Record{Topic: f.lines, Key: []byte("k"), Value: []byte("be"), Timestamp: at})
	}
	view, err := app.ViewWindows(perMinute.Ref())
	if err != nil {
		t.Fatal(err)
	}
	want := []streams.Windowed[int64]{{Start: minute, End: next, Value: 2}, {Start: next, End: next.Add(time.Minute), Value: 1}}
	same := func(a, b streams.Windowed[int64]) bool {
		return a.Start.Equal(b.Start) && a.End.Equal(b.End) && a.Value == b.Value
	}
	f.eventually("both windows to be counted", func() bool {
		rows, err := view.Fetch("be", minute, next)
		if err != nil {
			t.Fatal(err)
		}
		return slices.EqualFunc(rows, want, same)
	})
	if _, ok, err := view.Get("be", next.Add(time.Minute)); ok || err != nil {
		t.Errorf("a window that has not begun: %v, %v", ok, err)
	}
	app.end()
	if _, err := app.ViewWindows(perMinute.Ref()); !errors.Is(err, streams.ErrNotRunning) {
		t.Errorf("after the end: %v, want ErrNotRunning", err)
	}
}
