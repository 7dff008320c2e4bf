// Package integration tests whole applications: word counts in this process and in processes of their own, on the
// embedded cluster, or on the Kafka cluster that the environment variable KAFKA_BOOTSTRAP names:
//
//	go test ./integration
//	KAFKA_BOOTSTRAP=127.0.0.1:9092 go test ./integration
//
// Topics and groups have names of their own in every test, so that a cluster can be used again and again. The
// packages below are the means: cluster (the embedded cluster), kafka (a real broker from its published jars), gen
// (deterministic input), check (comparison with a replay), proc (processes), and the programs bench, demo and chaos.
package integration
