// Package clients runs other people's Kafka clients against the embedded cluster, under both of its profiles:
// "make test-clients"; and against a real Apache Kafka, for comparison: "make test-clients BROKER=apache".
//
// Each client is a short program in its own language that plays the same cases (see cases in matrix_test.go) against a
// fresh broker (see brokers in brokers_test.go), and prints one JSON line a case:
//
//	{"case": "static-bounce", "ok": true}
//	{"case": "fenced", "limit": "no group.instance.id"}     what the client itself has no way to do
//	{"case": "admin", "error": "…"}
//
// The program tells what its client saw. What the cluster saw is checked here, by the group's records in
// __consumer_offsets and by what is in the topics. A case passes when both are as they should be and the embedded
// cluster had nothing to complain about. Each result is compared with the table of expected limits; a limit that has gone is a
// failure too, so that the table stays true. docs/clients.md shows the same table.
//
// How a client gets here is in its own manifest, with pinned versions:
//
//	Java clients, Kafka Streams, Kafka's tools   ../kafka/pom.xml            Maven Central
//	librdkafka, kafka-python                     python/requirements.txt     PyPI
//	kafkajs                                      kafkajs/package-lock.json   npm
//	sarama                                       sarama/go.mod               Go module proxy, a module of its own
//	franz-go                                     ../../go.mod
//
// They are installed into .cache/clients beside go.mod and stay there. A missing runtime fails and says what to
// install; nothing is skipped.
package clients
