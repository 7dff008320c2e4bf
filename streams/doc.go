// Package streams is the public face of Millrace: a typed DSL for stateful stream processing on Kafka, and the App that
// runs it inside a Go program.
//
// A whole program:
//
//	b := streams.NewBuilder()
//	b.Stream("lines", serde.Bytes, serde.String).
//		FlatMapValues(strings.Fields).
//		GroupBy(func(_ []byte, w string) string { return w }, serde.String).
//		Count("word-counts").
//		ToStream().To("counts", serde.String, serde.Int64)
//
//	app, err := streams.New(b, streams.Config{AppID: "wordcount", ClientID: "wc-0", Brokers: brokers, StateDir: dir})
//	if err != nil {
//		return err
//	}
//	return app.Run(ctx) // blocks; cancelling ctx is a graceful stop
//
// # Concepts, in reading order
//
// A [Builder] collects operators. [Builder.Stream] reads a topic as a [Stream] of records, [Builder.Table] as a [Table] of
// the latest value of each key. Operators of a stream (Filter, Map, FlatMapValues, …) work record by record. Grouping
// ([Stream.GroupByKey], [Stream.GroupBy]) brings the records of a key into one task, through a repartition topic if need
// be; a [GroupedStream] aggregates them into a table whose rows are kept in a local store, backed by a changelog topic. A
// [WindowedStream] does so for each time window. [Table.ToStream] turns updates into records, [Stream.To] writes them.
// Operators and what they are called follow Kafka Streams, and so do topic names, topic configurations and bytes.
//
// Types flow through the chain: a new type parameter is inferred from the function that is passed. Serdes are inherited
// while a type stays the same, Go's built-in types have default ones (package serde), and for any other type a missing
// serde is an error of [Builder.Build], with the line of the call. Passing nil means the inherited or default one.
//
// Stateful operators need a name. It names the store and its topics, which must not change when operators are added
// elsewhere. Kafka's generated names are an option, [GeneratedNames].
//
// # Nulls
//
// Kafka's null key and null value (a tombstone) are flags of a record. A type with a null of its own, that is a pointer,
// an interface or []byte, shows them as nil to functions, and nil returned becomes null. Functions of values of any other
// type are not called for tombstones: each operator says whether they pass or are dropped. A missing key of such a type
// shows as the zero value. Nothing is dropped silently: every drop is counted under its reason.
//
// # Functions
//
// The functions given to operators run concurrently in the tasks of several stream threads. They must be pure or
// synchronise themselves, must not keep values that alias a record (serde.Bytes says so), and must not change a value
// that they received, except an aggregate that they return. Functions that can fail have operators with Try in front;
// errors and panics go to Config.OnProcessError.
//
// # Time
//
// Results carry the timestamp of the record that caused them, aggregates the greatest one of their row. Stream time is
// made of record timestamps only; no operator reads a clock.
package streams
