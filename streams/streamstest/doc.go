// Package streamstest runs a topology in a test: typed records in, typed records out, no broker, no goroutine, no clock.
//
//	b := streams.NewBuilder()
//	b.Stream("lines", serde.Bytes, serde.String). … .To("counts", serde.String, serde.Int64)
//
//	d, err := streamstest.New(b)
//	lines := d.Input("lines", serde.Bytes, serde.String)
//	counts := d.Output("counts", serde.String, serde.Int64)
//	err = lines.PipeValue("to be or not to be")
//	records, err := counts.ReadAll()
//
// This package is a promise to users.
//
// # What is the same as in production
//
// Everything between a fetched record and the outbox is: the plan, the tasks, the operators, the state with its overlay,
// and the order of a commit. The state engine is the one in memory. Every topic has one partition, so there is one task per
// sub-topology, and every record is processed, through all repartition topics, and committed before Pipe returns; that is
// how Kafka Streams' test driver works too, so tests can be carried over.
//
// # What is not
//
// Partitioning, rebalances, restores and failures of brokers do not happen; test those on integration/cluster. A commit
// after every record means that the changelog holds every update, where a real one holds the last of an interval.
//
// # Time
//
// Time is virtual. It begins at the Unix epoch, or at [StartAt], and moves by [Driver.Advance] only. Records carry it
// unless [At] gives them another timestamp, and stream time follows the records.
package streamstest
