// Command bench is the Go side of the benchmarks against Kafka Streams. It takes the flags and prints the
// JSON lines of the Java peer (integration/peer), so that one suite runs both (integration/bench/suite).
//
//	bench <workload> --bootstrap 127.0.0.1:9092 [--flag value ...]
//
// Workloads:
//
//	load       create the topics and write the deterministic input
//	raw        copy by a hand-written loop on the Kafka client: the limit of any framework on it
//	rawcount   count by hand: the same loop with a Go map, every count produced, the changelog once a key and commit
//	pass       in -> MapValues -> out
//	count      in -> GroupByKey -> Count -> out
//	windowed   in -> GroupByKey -> tumbling window -> Count -> out, keyed by key and window start
//	wordcount  lines -> words -> repartition by word -> Count -> out
//	verify     compare what a run left in the sink with a replay of the input; exit status 1 if they differ
//
// A record's value is touched (its first byte flipped, in a copy) by raw and pass, so that no side can hand
// on the bytes it got. Steady figures leave out the first 30 % of the records (--warm).
//
// Garbage collection: --gogc (default 200) sets the collector's pace and --memory-limit-mb (default 150) the
// memory from which it works harder, alike for the hand-written loops and for the framework; GOGC in the
// environment wins. The heap of these programs is small (tens of MiB), so that Go's own default of 100 collects
// every few milliseconds: on count, 200 took 6 % less processor time than 100, for a peak of 130 instead of
// 95 MiB, and 400 took no less than 200, for 180 MiB.
//
// Exit status: 0 done, 1 failed, timed out or not equal to the replay, 2 wrong arguments.
package main
