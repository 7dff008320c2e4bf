package metadata

import (
	"cmp"
	"slices"
	"time"

	"github.com/millrace-io/millrace/internal/taskid"
)

// UnknownGeneration stands for a group generation that nobody told: DescribeGroups does not carry it, but the assignments
// in a stable group do.
const UnknownGeneration int32 = -1

// Snapshot is what was known about an application's group at one moment. It is a value: whoever has one may keep it, and
// must not change the slices in it, because others share them.
type Snapshot struct {
	ApplicationID string    // empty when the reader had no topology to ask
	Group         string    // the consumer group
	ClusterID     string    // Kafka's cluster id
	State         string    // the group's state as the coordinator calls it: Empty, PreparingRebalance, CompletingRebalance, Stable, Dead
	Generation    int32     // the group's generation, or [UnknownGeneration]: see [Snapshot.WithLocal]
	Taken         time.Time // when the coordinator answered
	Instances     []Instance

	// Stale is set when the coordinator could not be asked again: the error of the last attempt. The rest of the snapshot
	// is then what was known at Taken.
	Stale error
}

// Age is how old the snapshot is at now, never negative.
func (s Snapshot) Age(now time.Time) time.Duration {
	return max(0, now.Sub(s.Taken))
}

// Instance is one process of the application. Kafka Streams calls this StreamsMetadata.
type Instance struct {
	Host            string // the endpoint that the process advertises, host:port; empty when it advertises none
	ProcessID       string // persisted id of the process' state directory; empty for a member that is not ours
	ClientID        string // the process' client.id
	InstanceIDs     []string
	Active          []taskid.ID
	Standby         []taskid.ID
	TopicPartitions []TopicPartition // source partitions of the active tasks
	Stores          []string         // stores of the active tasks; empty when the reader had no topology to ask
	Members         []Member
	Threads         []ThreadStatus // only of the answering process
	Local           bool           // this is the answering process
}

// Member is one member of the group: one stream thread.
type Member struct {
	MemberID   string
	InstanceID string // group.instance.id; empty for a dynamic member
	ClientID   string // the consumer's client.id
	ClientHost string // the address that the coordinator sees
	Active     []taskid.ID
	Standby    []taskid.ID
	Problem    string // why the member's subscription or assignment could not be read; empty when it could
}

// ThreadStatus is the state of one stream thread of the answering process, published by the thread itself.
type ThreadStatus struct {
	Name       string // <client.id>-StreamThread-<n>
	State      string // Kafka Streams' state names: CREATED, STARTING, PARTITIONS_ASSIGNED, RUNNING, …, DEAD
	InstanceID string // group.instance.id; empty for a dynamic member
	MemberID   string // empty while the thread has not joined
	Generation int32
	Active     []taskid.ID
	Standby    []taskid.ID
	Fenced     bool // another process has the instance id now
}

// TopicPartition names a partition of a topic.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Compare orders by topic, then by partition.
func (tp TopicPartition) Compare(other TopicPartition) int {
	return cmp.Or(cmp.Compare(tp.Topic, other.Topic), cmp.Compare(tp.Partition, other.Partition))
}

// Process is what the answering process knows about itself without asking anybody.
type Process struct {
	ApplicationID string
	Group         string
	ClientID      string // the process' client.id
	ProcessID     string
	Host          string // the endpoint that it advertises, host:port; may be empty
}

// WithLocal returns the snapshot with the instance of process p marked as local and with the states of its threads, which
// may know a higher generation than the snapshot. A process that the coordinator does not list yet (it starts, or the
// snapshot is older than its join), or whose subscriptions it withholds during a rebalance, is described by what its
// threads say. The receiver is not changed.
func (s Snapshot) WithLocal(p Process, threads []ThreadStatus) Snapshot {
	s.Generation = max(s.Generation, highestGeneration(threads))
	s.Instances = slices.Clone(s.Instances)
	at := slices.IndexFunc(s.Instances, func(in Instance) bool { return p.is(in) })
	switch {
	case at < 0:
		s.Instances = append(s.Instances, unlisted(p, threads))
		at = len(s.Instances) - 1
	case s.Instances[at].ProcessID == "":
		s.Instances[at] = unlisted(p, threads)
	}
	s.Instances[at].Local = true
	s.Instances[at].Threads = threads
	sortInstances(s.Instances)
	return s
}

// is tells whether an instance is this process: by the process id, or by the client id while the coordinator withholds the
// subscriptions that hold the former.
func (p Process) is(in Instance) bool {
	if in.ProcessID != "" {
		return in.ProcessID == p.ProcessID
	}
	return in.ClientID != "" && in.ClientID == p.ClientID
}

// unlisted describes a process of which the coordinator tells nothing, or nothing yet.
func unlisted(p Process, threads []ThreadStatus) Instance {
	in := Instance{Host: p.Host, ProcessID: p.ProcessID, ClientID: p.ClientID}
	for _, t := range threads {
		if t.Fenced {
			continue
		}
		in.addMember(Member{MemberID: t.MemberID, InstanceID: t.InstanceID, Active: t.Active, Standby: t.Standby})
	}
	in.finish()
	return in
}

func highestGeneration(threads []ThreadStatus) int32 {
	highest := UnknownGeneration
	for _, t := range threads {
		if t.MemberID != "" {
			highest = max(highest, t.Generation)
		}
	}
	return highest
}

// addMember adds what one member holds to its process.
func (in *Instance) addMember(m Member) {
	in.Members = append(in.Members, m)
	in.Active = append(in.Active, m.Active...)
	in.Standby = append(in.Standby, m.Standby...)
	if m.InstanceID != "" {
		in.InstanceIDs = append(in.InstanceIDs, m.InstanceID)
	}
}

// finish sorts what members added in the order of the answer, so that equal groups give equal snapshots.
func (in *Instance) finish() {
	slices.SortFunc(in.Active, taskid.ID.Compare)
	slices.SortFunc(in.Standby, taskid.ID.Compare)
	in.InstanceIDs = sortedSet(in.InstanceIDs, cmp.Compare[string])
	in.Stores = sortedSet(in.Stores, cmp.Compare[string])
	in.TopicPartitions = sortedSet(in.TopicPartitions, TopicPartition.Compare)
}

func sortedSet[T comparable](values []T, compare func(a, b T) int) []T {
	slices.SortFunc(values, compare)
	return slices.Compact(values)
}

// sortInstances orders by client id, the name that people gave, then by what tells equal names apart.
func sortInstances(instances []Instance) {
	slices.SortFunc(instances, func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.ClientID, b.ClientID), cmp.Compare(a.ProcessID, b.ProcessID), cmp.Compare(a.Host, b.Host),
			cmp.Compare(firstMember(a), firstMember(b)))
	})
}

func firstMember(in Instance) string {
	if len(in.Members) == 0 {
		return ""
	}
	return in.Members[0].MemberID
}
