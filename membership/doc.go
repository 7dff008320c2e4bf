// Package membership is the client side of a consumer group with static membership (KIP-345): instance ids, and
// [Member], the pure machine of one group member. It is internal to this project; membership/classic drives the
// machine with raw requests.
//
// # The machine
//
//	m := membership.NewMember(cfg)
//	for each input {                       // an answer, a timer, a wish of the thread
//		for _, a := range m.Step(now, input) {
//			// send a request, or hand an event to the thread
//		}
//	}                                      // and Step(now, Tick{}) at m.NextDeadline()
//
//	            Start               answer: id, generation        assignment
//	 Unjoined ─────────► Joining ─────────────────────► Syncing ─────────────► Stable
//	                     ▲  ▲  ▲                          │  │                  │
//	                     │  │  └── rebalance, lost ───────┘  │ tasks to release │ rebalance, lost, Rejoin
//	                     │  │                               ▼                  │
//	                     │  └──────── RevokeDone, lost ── Revoking             │
//	                     └──────────────────────────────────────────────────────┘
//	 any ── FENCED_INSTANCE_ID ──► Fenced ── Stop ──► Dead        any ── Stop, fatal answer ──► Dead
//
// # Rules that the machine holds
//
// M1: FENCED_INSTANCE_ID is final. Somebody joined with the same instance id; retrying would let two processes
// trade the id for ever. The member never joins again by itself.
//
// M2: a member id is kept until the coordinator says UNKNOWN_MEMBER_ID. A static member that joins with an empty id
// replaces itself, and its own older requests would then be fenced (KAFKA-20985).
//
// M3: an answer counts only for the request that is outstanding. What arrives late speaks of an identity or a
// generation that is no longer ours.
//
// M4: rebalances are cooperative. A member keeps its tasks through a rebalance, claims them when it joins, and joins
// again only after the thread has released what it no longer has.
//
// M5: at most one JoinGroup or SyncGroup is under way, because a coordinator holds back everything behind a parked
// request on the same connection. Heartbeats travel apart.
//
// # A returning static member
//
// It gets the stored assignment and nobody rebalances, but the leader did not see what it had to say. So the
// assignment echoes a hash of what the leader knew of the member (endpoint, topology, tags); if the member differs it
// joins again, once. A leader that returns is told to skip the assignment: the other members' metadata is as old as
// the last rebalance, so computing the plan again and comparing says nothing. Instead the assignment carries a hash of
// what there was to assign, and the leader joins again if that has changed. An assignment that asks for the release of
// tasks is honoured even by a member that came back without remembering that it owned them.
//
// # What is not relied upon
//
// That the generation identifies anything by itself: a coordinator that crashes may hand out a number twice. Tokens
// always carry the member id with it. That other members are of the same version: user data that cannot be read makes
// a member without history, not an error.
package membership
