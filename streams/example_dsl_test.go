package streams_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/streamstest"
	"github.com/millrace-io/millrace/streams/window"
)

// A topology can be looked at before it runs. The text is that of Kafka's TopologyDescription.
func Example_topology() {
	b := streams.NewBuilder()
	b.Stream("lines", serde.Bytes, serde.String).
		FlatMapValues(strings.Fields).
		GroupBy(func(_ []byte, w string) string { return w }, serde.String).
		Count("word-counts").
		ToStream().To("counts", serde.String, serde.Int64)

	text, err := b.Describe()
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.TrimSpace(text))
	// Output:
	// Topologies:
	//    Sub-topology: 0
	//     Source: KSTREAM-SOURCE-0000000000 (topics: [lines])
	//       --> KSTREAM-FLATMAPVALUES-0000000001
	//     Processor: KSTREAM-FLATMAPVALUES-0000000001 (stores: [])
	//       --> KSTREAM-KEY-SELECT-0000000002
	//       <-- KSTREAM-SOURCE-0000000000
	//     Processor: KSTREAM-KEY-SELECT-0000000002 (stores: [])
	//       --> word-counts-repartition-filter
	//       <-- KSTREAM-FLATMAPVALUES-0000000001
	//     Processor: word-counts-repartition-filter (stores: [])
	//       --> word-counts-repartition-sink
	//       <-- KSTREAM-KEY-SELECT-0000000002
	//     Sink: word-counts-repartition-sink (topic: word-counts-repartition)
	//       <-- word-counts-repartition-filter
	//
	//   Sub-topology: 1
	//     Source: word-counts-repartition-source (topics: [word-counts-repartition])
	//       --> KSTREAM-AGGREGATE-0000000003
	//     Processor: KSTREAM-AGGREGATE-0000000003 (stores: [word-counts])
	//       --> KTABLE-TOSTREAM-0000000007
	//       <-- word-counts-repartition-source
	//     Processor: KTABLE-TOSTREAM-0000000007 (stores: [])
	//       --> KSTREAM-SINK-0000000008
	//       <-- KSTREAM-AGGREGATE-0000000003
	//     Sink: KSTREAM-SINK-0000000008 (topic: counts)
	//       <-- KTABLE-TOSTREAM-0000000007
}

// Mistakes are collected and reported together, each with the line of the program.
func ExampleBuilder_Build_errors() {
	b := streams.NewBuilder()
	type order struct{ Customer string }
	b.Stream("orders", serde.String, serde.JSON[order]()).
		GroupBy(func(_ string, o order) order { return o }, nil).
		Count("")
	if _, err := b.Build("shop"); err != nil {
		for line := range strings.Lines(err.Error()) {
			_, mistake, _ := strings.Cut(line, " ")
			fmt.Print(mistake)
		}
	}
	// Output:
	// GroupBy: needs a key serde for streams_test.order: pass one, such as serde.JSON[streams_test.order]()
	// Count: needs a name for its store: Count("name", …), or generated names by the builder option GeneratedNames
}

// Windows keep one row for each key and window; the window's key leaves through a function.
func ExampleWindowedStream_Count() {
	b := streams.NewBuilder()
	b.Stream("clicks", serde.String, serde.String).
		GroupByKey().
		WindowedBy(window.Tumbling(time.Minute).Grace(10*time.Second)).
		Count("clicks-per-minute").
		ToStream(func(k window.Key[string]) string { return k.StartTime().UTC().Format("15:04 ") + k.Key }).
		To("per-minute", serde.String, serde.Int64)

	d, err := streamstest.New(b)
	if err != nil {
		fmt.Println(err)
		return
	}
	clicks := d.Input("clicks", serde.String, serde.String)
	for _, at := range []time.Duration{3 * time.Second, 59 * time.Second, 65 * time.Second, 58 * time.Second, 2 * time.Minute, 57 * time.Second} {
		if err := clicks.Pipe("ann", "/", streamstest.AtMilli(at.Milliseconds())); err != nil {
			fmt.Println(err)
		}
	}
	counts, err := d.Output("per-minute", serde.String, serde.Int64).ReadAll()
	if err != nil {
		fmt.Println(err)
	}
	for _, r := range counts {
		fmt.Println(r.Key, r.Value)
	}
	fmt.Println(d.Dropped())
	// Output:
	// 00:00 ann 1
	// 00:00 ann 2
	// 00:01 ann 1
	// 00:00 ann 3
	// 00:02 ann 1
	// map[late:1]
}

// Aggregates fold records into a type of their own; returning false deletes the row.
func ExampleGroupedStream_AggregateOrDelete() {
	type basket struct{ Items []string }
	b := streams.NewBuilder()
	b.Stream("cart", serde.String, serde.String).
		GroupByKey().
		AggregateOrDelete("baskets", func() basket { return basket{} }, func(_, item string, all basket) (basket, bool) {
			if item == "checkout" {
				return basket{}, false
			}
			return basket{append(all.Items, item)}, true
		}, serde.JSON[basket]()).
		ToStream().To("baskets", nil, nil)

	d, err := streamstest.New(b)
	if err != nil {
		fmt.Println(err)
		return
	}
	cart := d.Input("cart", serde.String, serde.String)
	for _, item := range []string{"tea", "milk", "checkout", "bread"} {
		if err := cart.Pipe("ann", item); err != nil {
			fmt.Println(err)
		}
	}
	rows, err := d.Output("baskets", serde.String, serde.JSON[basket]()).ReadAll()
	if err != nil {
		fmt.Println(err)
	}
	for _, r := range rows {
		fmt.Println(r.Value.Items, r.Tombstone)
	}
	// Output:
	// [tea] false
	// [tea milk] false
	// [] true
	// [bread] false
}

// A nullable serde shows Kafka's null to functions as nil, and writes nil as null.
func ExampleBuilder_Stream_nulls() {
	text := serde.Nullable(serde.String)
	b := streams.NewBuilder()
	b.Stream("in", serde.String, text).
		Filter(func(_ string, v *string) bool { return v == nil }).
		MapValues(func(*string) string { return "deleted" }).
		To("deletions", nil, nil)

	d, err := streamstest.New(b)
	if err != nil {
		fmt.Println(err)
		return
	}
	in := d.Input("in", serde.String, text)
	value := "hello"
	for _, v := range []*string{&value, nil} {
		if err := in.Pipe("k", v); err != nil {
			fmt.Println(err)
		}
	}
	for _, r := range d.Written("deletions") {
		fmt.Printf("%s=%s\n", r.Key, r.Value)
	}
	// Output: k=deleted
}
