// Package metadata tells which processes run an application, and what each of them holds: Kafka Streams' StreamsMetadata,
// with the group instance ids that Kafka Streams never showed.
//
// This package is internal to the project: users meet its values through streams.App and the REST side.
//
// # Model
//
// A [Snapshot] is an immutable value: what the group coordinator said at [Snapshot.Taken]. It is made of one DescribeGroups
// answer ([Describe]), because that is the only source that knows every member without asking every process: the answer
// holds each member's instance id, host, subscription bytes (process id, endpoint) and assignment bytes (tasks). Members
// are grouped to an [Instance] by the process id in their subscription.
//
// What a process knows about itself is fresher than that and has more in it: the state of its threads and the group
// generation, which DescribeGroups does not tell. [Snapshot.WithLocal] adds both for the answering process, and only for it.
//
// [Cache] bounds how often the coordinator is asked. Everything about other processes is therefore as old as the snapshot;
// whoever shows it shows its age too.
//
// # What is not relied upon
//
// Nothing here decides who may process what: the group protocol does. A snapshot may be outdated when it is read (a
// rebalance may have begun), so a look-up by key gives a host to ask, not a promise that it still owns the key. Members
// whose bytes cannot be decoded (another client in the group, a newer version) are listed with the reason, never hidden.
//
// topics.go is the other half: it creates the internal topics of a topology, and checks them and the source topics, with
// errors that say which topic, what is wrong and what to do.
package metadata
