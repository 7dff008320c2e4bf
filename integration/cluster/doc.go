// Package cluster is an embedded Kafka cluster of one node, for the first minute, for tests and for single-node tools.
// It speaks Kafka's protocol on a TCP address, keeps its data in a directory, and has group coordination with full
// static membership.
//
//	c, err := cluster.Start(cluster.DataDir(dir), cluster.Topic("lines", 4))
//	if err != nil { … }
//	defer c.Close()
//	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
//
// # Design
//
//	             ┌───────────────────────── Cluster ─────────────────────────┐
//	clients ───▶ │ listener ─ guard ──▶ kfake: logs, transactions, metadata  │
//	             │              │            ▲                 │             │
//	             │      group requests       │ records         │ markers     │
//	             │              ▼            │                 ▼             │
//	             │  groups: the loop ──▶ offsetLog           tail            │
//	             │  of the coordinator  ◀── appended, transaction ended ──   │
//	             └───────────────────────────────────────────────────────────┘
//
// kfake (stock and pinned) keeps logs, transactions and metadata. Its own group coordinator does not keep the rules of
// static membership, so no group request ever reaches it: the guard of each connection takes those out and has them
// answered by the machine of package membership/coordinator. Most of the rest goes to kfake without a further copy; what
// has to be looked at first (see Bounds), and what is long, is collected before.
//
// Offsets have one owner, the coordinator. Its records are Kafka's own, in the topic __consumer_offsets. An offset that
// belongs to a transaction is appended as part of that transaction, so its marker decides the offset together with the
// records, time-outs included; until then it is pending (OffsetFetch with require_stable: UNSTABLE_OFFSET_COMMIT).
//
// # Goroutines
//
//	accept loop         listener.acceptLoop   waits in listener.disconnect
//	coordinator loop    groups.run            ends in groups.close
//	appends             offsetLog.run         ends in offsetLog.close
//	markers             tail.run              ends in tail.close
//	two a connection    kfake's               end when the connection closes
//	one a parked join   guard.watch           ends with the answer, or when its client leaves
//
// # Failure
//
// A killed process loses nothing that it acknowledged: every write goes to the operating system before its answer. What
// the kill cut is put right by the next start, before kfake reads its files, and told by [Cluster.Recovery]: the record
// that was being written is removed; a transaction that had ended in some partition ends so in the others, one whose commit
// had been asked for is committed everywhere, and any other that was open is aborted (decisions.go); the producers of all
// are fenced; and what each producer wrote last is known, so that nobody writes a batch twice who sends it again. A start
// that is killed leaves the same work to the next. A power failure may lose acknowledged records, since nothing is synced
// (with [SyncWrites] the records are, and nothing else).
// The places that crash tests aim at are in crash.go.
//
// kfake's files are read and mended in recovery.go, logrecovery.go, sequences.go and purge.go, and nowhere else; all belong
// to the pinned version.
//
// # Bounds
//
// What clients send is not trusted. Frames of wrong length, unknown requests and broken bodies end their connection, and
// are counted by [Cluster.Refused]. So does a frame that has begun and does not end in 30 s (and a second more for each
// 64 KiB), and a client that does not take its response in that time; between two requests it may idle for ten minutes.
// The number of connections, and the bytes that their requests hold until they are answered, are bounded (budget.go).
//
// kfake appends, creates and changes nearly whatever it is asked to. What it would not survive, or keep and regret, is
// answered before it gets there, as Kafka 4.4 answers it: batches are looked at record by record (records.go) and
// transactions by producer (epochs.go); topics and configs by name, number and value (topicadmin.go, topicconfigs.go).
// Different from Kafka are: batches that unpack to more than 64 MiB are refused (INVALID_RECORD; Kafka has a config for
// that); the broker's own configs cannot be changed; clients cannot write to __consumer_offsets, delete it, cut it, give
// it partitions or configs.
//
// The address is on loopback unless [Listen] says otherwise, and then a warning tells what that means.
//
// # Not relied upon, and not offered
//
// There is no replication, no authentication, no quota; those requests are not served, or answered as by a broker without
// (elections are never needed, there is no authorizer and no SASL). Retention and compaction are off, because kfake's are not safe:
// records leave only with their topic or by DeleteRecords, and after a kill some that DeleteRecords removed may be back.
// kfake's own group coordinator, cleaner and listener are not used. Do not keep the only copy of anything here.
package cluster
