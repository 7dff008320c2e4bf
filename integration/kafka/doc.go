// Package kafka runs a real Apache Kafka broker on this machine, for integration tests and benchmarks.
//
// The broker comes from its published jars: Maven resolves them from Maven Central once, and plain java
// runs them. There is no tarball, no container and no script of Kafka's. A broker is one node in KRaft
// mode, bound to the loopback address, with everything it writes below one run directory:
//
//	<run directory>/classpath-<hash>.txt   the jars, by the hash of pom.xml
//	<run directory>/<name>/                 configuration, log, data and process of the broker <name>
//
// The run directory is $MILLRACE_KAFKA_DIR, or .kafka beside go.mod.
//
// [Start] returns when the broker serves requests. The broker is a process of its own in a session of its
// own: it outlives a caller that does not stop it, which the command in cmd/kafka relies on, and a Ctrl-C
// in a terminal does not reach it. [Find] attaches to one that another process has started. Only a process
// that this package started is ever signalled: pid and start time must both match what Start wrote down.
//
// With Config.Secure the broker asks for TLS and authentication and lets ACLs decide; its directory then holds what clients need.
//
// Not relied upon: Kafka's shell scripts, KAFKA_HOME, any port but those chosen here, and a tool's exit
// status alone (the ready line in the log decides).
package kafka
