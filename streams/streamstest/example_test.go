package streamstest_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/streamstest"
	"github.com/millrace-io/millrace/streams/window"
)

// A word count, driven record by record.
func Example() {
	b := streams.NewBuilder()
	b.Stream("lines", serde.Bytes, serde.String).
		FlatMapValues(strings.Fields).
		GroupBy(func(_ []byte, word string) string { return word }, serde.String).
		Count("word-counts").
		ToStream().
		To("counts", serde.String, serde.Int64)

	d, err := streamstest.New(b)
	if err != nil {
		fmt.Println(err)
		return
	}
	lines := d.Input("lines", serde.Bytes, serde.String)
	if err := lines.PipeValue("to be or not to be"); err != nil {
		fmt.Println(err)
		return
	}
	counts, err := d.Output("counts", serde.String, serde.Int64).ReadAll()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range counts {
		fmt.Println(r.Key, r.Value)
	}
	// Output:
	// to 1
	// be 1
	// or 1
	// not 1
	// to 2
	// be 2
}

// Records say when they happened; windows close as stream time passes them.
func ExampleAt() {
	b := streams.NewBuilder()
	b.Stream("clicks", serde.String, serde.String).
		GroupByKey().
		WindowedBy(window.Tumbling(time.Minute).Grace(0)).
		Count("per-minute").
		ToStream(func(k window.Key[string]) string { return k.Key + "@" + k.StartTime().UTC().Format("15:04") }).
		To("counts", serde.String, serde.Int64)

	d, err := streamstest.New(b)
	if err != nil {
		fmt.Println(err)
		return
	}
	clicks := d.Input("clicks", serde.String, serde.String)
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, after := range []time.Duration{0, 30 * time.Second, 61 * time.Second, 59 * time.Second} {
		if err := clicks.Pipe("ann", "click", streamstest.At(noon.Add(after))); err != nil {
			fmt.Println(err)
			return
		}
	}
	counts, err := d.Output("counts", serde.String, serde.Int64).ReadAll()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range counts {
		fmt.Println(r.Key, r.Value)
	}
	fmt.Println("dropped:", d.Dropped())
	// Output:
	// ann@12:00 1
	// ann@12:00 2
	// ann@12:01 1
	// dropped: map[late:1]
}
