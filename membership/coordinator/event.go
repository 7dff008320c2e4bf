package coordinator

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// An Event is one input of [Machine.Step]: a [Request], [Appended], [TxnEnded], [Loading], [Loaded], [Unloaded],
// [TopicChanged], [TopicDeleted], [Configure], [ForceRebalance] or [Tick].
type Event interface {
	event()
	String() string
}

// Request is one decoded client request. It is answered by exactly one *[Reply] with the same ID, in this step or
// in a later one (JoinGroup and SyncGroup park, and whatever is stored waits for its append).
//
// The machine keeps byte slices of the request (subscriptions, assignments): the owner must not reuse the buffer that
// the request was decoded from.
type Request struct {
	ID       uint64       // chosen by the owner, unique among the requests that are not yet answered
	ClientID string       // from the request header; becomes the prefix of a dynamic member's id
	Host     string       // the client's address as DescribeGroups shows it; Kafka writes "/127.0.0.1"
	Req      kmsg.Request // a kind that [Handles] knows, its version set
}

// Appended is the result of the [Append] with the same ID. Err is nil if the records are durable.
type Appended struct {
	ID  uint64
	Err *kerr.Error
}

// TxnEnded tells that a transaction's marker was written: its pending offsets become visible (Commit) or are
// dropped. ProducerEpoch is the marker's, which may be higher than the epoch that wrote the offsets (KIP-890, fencing);
// offsets of a later epoch stay pending.
type TxnEnded struct {
	ProducerID    int64
	ProducerEpoch int16
	Commit        bool
}

// Loading tells that the owner begins to read an offsets partition: until [Loaded], requests for its groups are
// answered COORDINATOR_LOAD_IN_PROGRESS (a heartbeat: no error).
type Loading struct{ Partition int32 }

// Loaded hands over an offsets partition with everything in its log, in order. From then on the machine answers for
// the groups of that partition; before, it answers NOT_COORDINATOR. A new partition is Loaded without records.
type Loaded struct {
	Partition int32
	Records   []LogRecord
}

// Unloaded takes an offsets partition away: parked requests are answered NOT_COORDINATOR and its groups are forgotten.
type Unloaded struct{ Partition int32 }

// TopicChanged tells of a topic that exists (created, or grown). Commits for topics that the machine was not told of
// are answered UNKNOWN_TOPIC_OR_PARTITION; topic ids in requests are resolved with it.
type TopicChanged struct {
	Topic      string
	ID         [16]byte
	Partitions int32
}

// TopicDeleted tells that a topic is gone; its committed offsets are deleted from every group.
type TopicDeleted struct{ Topic string }

// Configure replaces the settings of a group, whether it exists yet or not. They must be valid ([Settings.Validate]) and
// hold until the next Configure; the owner stores them if they are to survive it.
type Configure struct {
	Group    string
	Settings Settings
	// RemoveNow lets the members that this change takes off the list of expected ids, and those that an earlier one did,
	// leave at once, in one rebalance, instead of when they are all offline.
	RemoveNow bool
	// Dismissed are instance ids that changes before the machine was made have taken off the list (see [Dismissed]). The owner
	// stores them with the settings.
	Dismissed []string
}

// ForceRebalance begins a rebalance of a group of static members, at the end of which those that did not rejoin are out:
// exactly one generation passes. It is answered by one *[Forced] with the same ID.
type ForceRebalance struct {
	ID       uint64
	Group    string
	Deadline time.Duration // for the members to rejoin; 0, or more than that: the longest rebalance timeout of the members
}

// Tick only moves the clock. The owner sends it when [Machine.NextDeadline] has come.
type Tick struct{}

func (Request) event()        {}
func (Appended) event()       {}
func (TxnEnded) event()       {}
func (Loading) event()        {}
func (Loaded) event()         {}
func (Unloaded) event()       {}
func (TopicChanged) event()   {}
func (TopicDeleted) event()   {}
func (Configure) event()      {}
func (ForceRebalance) event() {}
func (Tick) event()           {}

func (e Request) String() string {
	return fmt.Sprintf("request %d %s v%d from %q at %q", e.ID, kmsg.NameForKey(e.Req.Key()), e.Req.GetVersion(), e.ClientID, e.Host)
}

func (e Appended) String() string {
	if e.Err != nil {
		return fmt.Sprintf("appended %d: %s", e.ID, e.Err.Message)
	}
	return fmt.Sprintf("appended %d", e.ID)
}

func (e TxnEnded) String() string {
	outcome := "aborted"
	if e.Commit {
		outcome = "committed"
	}
	return fmt.Sprintf("transaction of producer %d epoch %d %s", e.ProducerID, e.ProducerEpoch, outcome)
}

func (e Loading) String() string { return fmt.Sprintf("loading partition %d", e.Partition) }

func (e Loaded) String() string {
	return fmt.Sprintf("loaded partition %d with %d records", e.Partition, len(e.Records))
}

func (e Unloaded) String() string { return fmt.Sprintf("unloaded partition %d", e.Partition) }

func (e TopicChanged) String() string {
	return fmt.Sprintf("topic %s has %d partitions", e.Topic, e.Partitions)
}

func (e TopicDeleted) String() string { return fmt.Sprintf("topic %s deleted", e.Topic) }

func (e Configure) String() string {
	return fmt.Sprintf("settings of group %s: %+v", e.Group, e.Settings)
}

func (e ForceRebalance) String() string {
	return fmt.Sprintf("force rebalance %d of group %s within %v", e.ID, e.Group, e.Deadline)
}

func (Tick) String() string { return "tick" }
