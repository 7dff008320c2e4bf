// Package statestore holds the state of one task: typed store contracts, the overlay of uncommitted writes, the changelog
// offsets, and the state directory they live in.
//
// # Model
//
// A task owns one [Engine], the base: an ordered map of bytes that takes atomic batches. Above it lies one overlay in
// memory with everything written since the last commit. Reads look into the overlay, then into the base; writes go to
// the overlay only. A commit runs in two steps that the owner calls at the right moments:
//
//   - [State.Changelog] hands out the last value of every dirty key, once, in the bytes of Kafka Streams' changelogs.
//     The owner produces them and waits for the acknowledgements.
//   - [State.Commit] writes the overlay and the changelog offsets to the base in one batch. The owner calls it after
//     the commit point in Kafka: an acknowledged offset commit, or an acknowledged end of the transaction.
//
// [State.Abort] drops the overlay instead. Three invariants follow, and recovery relies on each of them:
//
//	S1  The base holds only committed data. After an abort there is nothing to undo and nothing to wipe.
//	S2  Data and offset are in one batch and engines recover exact prefixes of their batches, so after any crash the
//	    base is the changelog's content up to the stored offset, neither more nor less. Restoring from that offset is
//	    always right.
//	S3  The base is never ahead of Kafka: an offset is stored only for records that Kafka acknowledged.
//
// After a commit the entries stay in the overlay as a read cache within a byte budget, absent keys included.
//
// # What is not relied upon
//
// Engines need no write-ahead log and no sync per commit (S2 needs order, not durability): what a crash takes back is
// read again from the changelog. Nothing relies on a clean shutdown. Nothing here knows Kafka beyond the changelog's
// byte layout; timestamps and offsets are plain int64 values.
//
// # Concurrency
//
// A [State] and its stores belong to one goroutine at a time, the task's. [State.Reader] is the exception: any
// goroutine may take a committed view, and it stays consistent while the owner goes on.
//
// The store contracts, [Engine] and the layout of the state directory are promises to users; local byte layouts are not.
package statestore
