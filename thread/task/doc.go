// Package task runs one task: one partition of one sub-topology. It is internal to this project.
//
// A task is pure: raw records in, encoded records and commit positions out. It knows no broker, clock, goroutine or
// lock; its owner, one goroutine, feeds it and carries out what it asks for. The journey of a record:
//
//	Enqueue   the owner appends what it fetched to the queue of an input            queue.go
//	Process   the input with the smallest head timestamp is next; its record runs
//	          depth first through the operators                                     process.go
//	Outbox    what operators produced lies encoded in an arena; the owner takes it  outbox.go
//	commit    FlushChangelog, Positions, then Committed or Abort                    commit.go
//
// # Order
//
// Records of one input are never reordered. Among inputs the smallest timestamp of the queue heads wins, the earlier
// input on a tie, so the result depends on the records alone as long as all inputs have some. Stream time is the
// greatest timestamp taken.
//
// # Failures
//
// An operator that cannot process a record reports it where it happens; the handlers decide between failing and
// skipping. Skipping leaves out that operator and what follows it; siblings and earlier effects stay, as in Kafka
// Streams. A panic unwinds to Process, once a call, so skipping it leaves out the rest of the record. Failing returns an
// *[Error] with coordinates and leaves the record at the head: nothing of it will be committed, the owner aborts.
//
// # What is not relied upon
//
// Offsets need not be dense. Commit metadata may be missing, foreign or from another version of the topology: stream
// times then begin anew.
package task
