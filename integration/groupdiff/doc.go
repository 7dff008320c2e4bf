// Package groupdiff compares our group coordinator with Apache Kafka's: the same sequence of requests goes to a real
// broker and to the embedded cluster with the Kafka profile, and after every request the answers are compared.
//
//	KAFKA_BOOTSTRAP=127.0.0.1:9092 go test ./integration/groupdiff              100 random sequences, and those written by hand
//	KAFKA_BOOTSTRAP=… GROUPDIFF_N=2000 go test ./integration/groupdiff -timeout 2h       (GROUPDIFF_FROM=n begins there)
//	KAFKA_BOOTSTRAP=… GROUPDIFF_SEED=17 go test ./integration/groupdiff -v      one sequence, with its trace
//
// Both sides need the same group settings: no initial rebalance delay, which is the default of the embedded cluster and
// of the broker that integration/kafka starts.
//
// The offsets topics are compared too: Kafka's own formatters print ours, and our machine takes over a real broker's.
//
// # How answers are compared
//
// Each request has a connection of its own, since a JoinGroup may park. A request's effects are complete when a
// heartbeat to its group and an offset commit to another group of the same offsets partition, both sent after it, have
// been answered: both coordinators work through a partition in order. Which requests are answered and which are parked
// is part of the comparison. Member ids are random; they are renamed in the order in which clients are told. Groups are as
// Kafka's: sessions last five minutes here, so no clock ends one.
//
// A parked request cannot be told from one that a busy broker has not read yet, so now and then one overtakes another on
// one side. A difference counts when the same sequence, with another group and a pause after each request, shows it
// again. Differences that are no mistake of either side are rows of a table (known.go), each with its reason; a sequence
// ends with the first of them, because the two groups have parted.
//
// Not compared: the order of members, topics and partitions within an answer, throttle times, and error texts.
package groupdiff
