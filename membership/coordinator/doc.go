// Package coordinator is Kafka's group coordinator for classic groups with full static membership (KIP-345), as a
// pure machine: requests, the clock and log records go in, answers and records to append come out.
//
// # Model
//
// A [Machine] holds every group of the offsets partitions that its owner has handed to it. The owner calls
// [Machine.Step] with one [Event] at a time and carries out the returned actions in order:
//
//	Request ──┐                  ┌── *Reply      one per request, now or after other steps (a parked request)
//	Appended ─┤                  ├── *Append     records for the owner to append to __consumer_offsets
//	TxnEnded ─┼── Machine.Step ──┤
//	Loaded ───┤                  ├── *Forced     what became of a forced rebalance
//	Tick ─────┘                  └── *BadRecord  a log record that could not be read and was left out
//
// Time is an argument, ids come from [Config.NewID], and the package starts no goroutine, takes no lock, reads no
// clock and does no input or output: equal inputs give equal outputs, so every bug can be replayed from a script
// (testdata/README.md describes the script language; the scripts are the specification to read first, and
// testdata/RULES.md has the rules as tables).
//
// # Where a rule lives
//
// One file per request (join.go, sync.go, heartbeat.go, leave.go, offset_commit.go, …), the group's state and its
// transitions in group.go, the rebalance itself in rebalance.go, the replacement of a static member in static.go,
// everything that starts with a clock in timers.go, the byte formats in record.go, the restart in load.go. The
// differences between the rule profiles are rows of one table in profile.go.
//
// What the drafts of KIP-345 asked for and Kafka never shipped is off unless [Configure] turns it on for a group
// ([Settings]): members that are kept while they are offline in offline.go, new ones that wait for each other in
// newcomers.go, hot spares in spares.go; a forced rebalance is in force.go.
//
// # States
//
//	          first join             all joined, or the join timer
//	  Empty ─────────────▶ Preparing ─────────────────────────────▶ Completing
//	    ▲                   │    ▲  ▲                                    │
//	    └───────────────────┘    │  └──── change, leave, expiry ─────────┤
//	       nobody is left        │                                       │ leader's Sync is stored
//	                             └─────────────── Stable ◀───────────────┘
//
//	any state ─▶ Dead: unloaded, or being deleted
//
// # Durability
//
// What Kafka persists is persisted here: a change that must survive is emitted as an [Append], and its answer waits
// for [Appended] with the same id. A failed append is taken back as Kafka does. Offsets become visible when their
// append has succeeded. Offsets of a transaction stay pending until [TxnEnded] tells the marker's decision.
//
// # What is not relied upon
//
// Nothing depends on how fast the owner is, on appends being acknowledged in the order in which they were emitted,
// or on clients that stay: a parked request whose connection is gone is answered like any other and the owner
// drops the answer. Two things the owner must keep: requests of one connection arrive in the order sent, and for one
// offsets partition [Appended] of transactional records and [TxnEnded] arrive in the log's order.
package coordinator
