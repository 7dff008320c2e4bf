// Package classic lets a [membership.Member] take part in a consumer group over the wire: it sends the classic group
// requests as raw requests through a kgo client that has no group of its own. It is internal to this project.
//
// # Why not kgo's group client
//
// It retries for ever when it is fenced, gives a custom balancer no say when a returning leader is told to skip the
// assignment, joins silently as a dynamic member where the broker is too old, and serialises commits with joins. Here
// kgo finds the coordinator, keeps connections and retries what its transport lost; who is a member and with which
// generation is decided by the machine alone.
//
// # Goroutines
//
//	driver loop    one per [Driver], from [Start] to [Driver.Close]: owns the machine, its timer and the event queue
//	request        one per request under way, at most one JoinGroup or SyncGroup and one Heartbeat
//
// JoinGroup and SyncGroup travel on a connection of their own (kgo's), so a parked join holds up no heartbeat and no
// commit. Commits and offset fetches run on the caller's goroutine.
//
// # What the thread sees
//
// Events come in order over an unbuffered channel; the driver queues them, so a busy thread delays no heartbeat. The
// commit token lags behind on purpose in one case: after the member has lost its tasks there is no token until the
// thread has received [membership.Lost]. Otherwise the thread could commit tasks that are somebody else's by now under
// the token of the generation after.
//
// # What is not relied upon
//
// The version check at the start sees one broker. A coordinator that moves to an older one is noticed by the version
// of its answer to JoinGroup, which must be able to carry an instance id.
package classic
