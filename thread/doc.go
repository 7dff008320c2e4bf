// Package thread runs tasks: a [Thread] is one goroutine that fetches records, gives them to its tasks, produces what they
// emit, keeps their state and commits all of it together, at least once or exactly once.
//
// This package is internal to the project; streams.App is how it is used.
//
// # Model
//
// Everything a thread owns (its tasks, their stores, the positions, the transaction) belongs to its goroutine, so nothing on
// the record path takes a lock. The rest of the world speaks to it through channels: the group membership with
// [membership.Event]s, the fetcher with batches (poll.go), the restore plane with opened tasks (restore.go). What others
// want to know about a thread is published as an immutable snapshot ([Thread.Status], [Thread.Stores]).
//
// A record's way: fetcher → route.go → task queue → [task.Task.Process] → outbox → produce.go → broker. One turn of the loop
// (thread.go) processes a bounded number of records of every task in turn, so that no task starves another and events
// are seen often; the clock is read once a turn.
//
// commit.go has the order in which a commit happens, C0 to C7, and eos.go what differs in a transaction. This order is the
// whole argument for correctness: state on disk is always an exact prefix of the changelog, under exactly-once of
// committed state, whatever dies when.
//
// # What is not relied upon
//
// The Kafka client's group consumer and its idea of positions are not used: partitions are added with explicit offsets, and
// committed positions come from processed records. A flush of the client does not count as acknowledgement, only the
// promises of all records do. Heartbeats do not depend on this goroutine (the membership driver has its own), and
// restoring does not either (the restore plane has its own), so a slow user function delays nobody else's tasks.
package thread
