package rest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/metadata"
)

// The JSON forms. Their field names are a promise to tools; the Go types exist so that the command line reads and prints
// the same form. Lists are never null, times are RFC 3339, durations are milliseconds, task ids are "<sub-topology>_<partition>".

// MetadataResponse is the answer of GET /v1/metadata.
type MetadataResponse struct {
	ApplicationID string     `json:"application_id"`
	Group         string     `json:"group"`
	ClusterID     string     `json:"cluster_id"`
	GroupState    string     `json:"group_state"`
	Generation    *int32     `json:"generation"` // null: the answering process has not joined
	State         string     `json:"state"`      // of the answering process
	Taken         time.Time  `json:"taken"`
	AgeMS         int64      `json:"age_ms"`
	Stale         string     `json:"stale,omitempty"` // why the coordinator could not be asked again
	Instances     []Instance `json:"instances"`
}

// Instance is one process of the application in a [MetadataResponse].
type Instance struct {
	Host            string           `json:"host"`
	ProcessID       string           `json:"process_id"`
	ClientID        string           `json:"client_id"`
	Local           bool             `json:"local"`
	AgeMS           int64            `json:"age_ms"` // of all but the threads, which are as of now
	InstanceIDs     []string         `json:"instance_ids"`
	ActiveTasks     []string         `json:"active_tasks"`
	StandbyTasks    []string         `json:"standby_tasks"`
	TopicPartitions []TopicPartition `json:"topic_partitions"`
	Stores          []string         `json:"stores"`
	Members         []Member         `json:"members"`
	Threads         []Thread         `json:"threads,omitempty"` // only of the answering process
}

// TopicPartition names a partition of a topic.
type TopicPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

// Member is a group member, that is a stream thread, of any process.
type Member struct {
	MemberID     string   `json:"member_id"`
	InstanceID   string   `json:"instance_id,omitempty"`
	ClientID     string   `json:"client_id"`
	ClientHost   string   `json:"client_host"`
	ActiveTasks  []string `json:"active_tasks"`
	StandbyTasks []string `json:"standby_tasks"`
	Problem      string   `json:"problem,omitempty"` // why its bytes could not be read
}

// Thread is a stream thread of the answering process.
type Thread struct {
	Name         string   `json:"name"`
	State        string   `json:"state"`
	InstanceID   string   `json:"instance_id,omitempty"`
	MemberID     string   `json:"member_id,omitempty"`
	Generation   int32    `json:"generation"`
	ActiveTasks  []string `json:"active_tasks"`
	StandbyTasks []string `json:"standby_tasks"`
	Fenced       bool     `json:"fenced,omitempty"` // another process has the instance id now
}

// InstancesResponse is the answer of GET /v1/instances: one entry a group member, because each stream thread is a member.
type InstancesResponse struct {
	Group      string          `json:"group"`
	Scope      string          `json:"scope"` // local or group
	GroupState string          `json:"group_state,omitempty"`
	Instances  []GroupInstance `json:"instances"`
}

// GroupInstance is one group member with what is known of its process. Thread and State are known for threads of the
// answering process only.
type GroupInstance struct {
	InstanceID   string   `json:"instance_id,omitempty"` // empty: a dynamic member
	MemberID     string   `json:"member_id,omitempty"`
	ClientID     string   `json:"client_id"`
	ClientHost   string   `json:"client_host,omitempty"`
	ProcessID    string   `json:"process_id"`
	Host         string   `json:"host"`
	Local        bool     `json:"local"`
	Thread       string   `json:"thread,omitempty"`
	State        string   `json:"state,omitempty"`
	AgeMS        int64    `json:"age_ms"`
	ActiveTasks  []string `json:"active_tasks"`
	StandbyTasks []string `json:"standby_tasks"`
	Problem      string   `json:"problem,omitempty"`
	Fenced       bool     `json:"fenced,omitempty"` // another process has the instance id now
}

// ThreadsResponse is the answer of GET /v1/threads.
type ThreadsResponse struct {
	State   string   `json:"state"`
	Threads []Thread `json:"threads"`
}

// newMetadata puts a snapshot into its JSON form; state is the answering process'.
func newMetadata(s metadata.Snapshot, state string, now time.Time) MetadataResponse {
	r := MetadataResponse{
		ApplicationID: s.ApplicationID, Group: s.Group, ClusterID: s.ClusterID, GroupState: s.State, State: state,
		Taken: s.Taken.UTC(), AgeMS: s.Age(now).Milliseconds(), Stale: errorText(s.Stale), Instances: []Instance{},
	}
	if s.Generation != metadata.UnknownGeneration {
		r.Generation = &s.Generation
	}
	for _, in := range s.Instances {
		r.Instances = append(r.Instances, newInstance(in, r.AgeMS))
	}
	return r
}

func newInstance(in metadata.Instance, ageMS int64) Instance {
	r := Instance{
		Host: in.Host, ProcessID: in.ProcessID, ClientID: in.ClientID, Local: in.Local, AgeMS: ageMS,
		InstanceIDs: list(in.InstanceIDs), ActiveTasks: taskNames(in.Active), StandbyTasks: taskNames(in.Standby),
		TopicPartitions: []TopicPartition{}, Stores: list(in.Stores), Members: []Member{}, Threads: newThreads(in.Threads),
	}
	for _, tp := range in.TopicPartitions {
		r.TopicPartitions = append(r.TopicPartitions, TopicPartition(tp))
	}
	for _, m := range in.Members {
		r.Members = append(r.Members, Member{
			MemberID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID, ClientHost: m.ClientHost,
			ActiveTasks: taskNames(m.Active), StandbyTasks: taskNames(m.Standby), Problem: m.Problem,
		})
	}
	return r
}

func newThreads(threads []metadata.ThreadStatus) []Thread {
	r := []Thread{}
	for _, t := range threads {
		r = append(r, Thread{
			Name: t.Name, State: t.State, InstanceID: t.InstanceID, MemberID: t.MemberID, Generation: t.Generation,
			ActiveTasks: taskNames(t.Active), StandbyTasks: taskNames(t.Standby), Fenced: t.Fenced,
		})
	}
	return r
}

// LocalInstances lists the threads of one process from what it knows itself.
func LocalInstances(p metadata.Process, threads []metadata.ThreadStatus) InstancesResponse {
	r := InstancesResponse{Group: p.Group, Scope: scopeLocal, Instances: []GroupInstance{}}
	for _, t := range threads {
		r.Instances = append(r.Instances, GroupInstance{
			InstanceID: t.InstanceID, MemberID: t.MemberID, ClientID: p.ClientID, ProcessID: p.ProcessID, Host: p.Host,
			Local: true, Thread: t.Name, State: t.State, ActiveTasks: taskNames(t.Active), StandbyTasks: taskNames(t.Standby),
			Fenced: t.Fenced,
		})
	}
	return r
}

// GroupInstances lists every member of the group in a snapshot, as old as it is at now.
func GroupInstances(s metadata.Snapshot, now time.Time) InstancesResponse {
	r := InstancesResponse{Group: s.Group, Scope: scopeGroup, GroupState: s.State, Instances: []GroupInstance{}}
	for _, in := range s.Instances {
		for _, m := range in.Members {
			r.Instances = append(r.Instances, newGroupInstance(in, m, s.Age(now).Milliseconds()))
		}
	}
	slices.SortStableFunc(r.Instances, func(a, b GroupInstance) int {
		return cmp.Or(cmp.Compare(a.InstanceID, b.InstanceID), cmp.Compare(a.MemberID, b.MemberID))
	})
	return r
}

func newGroupInstance(in metadata.Instance, m metadata.Member, ageMS int64) GroupInstance {
	r := GroupInstance{
		InstanceID: m.InstanceID, MemberID: m.MemberID, ClientID: in.ClientID, ClientHost: m.ClientHost, ProcessID: in.ProcessID,
		Host: in.Host, Local: in.Local, AgeMS: ageMS, ActiveTasks: taskNames(m.Active), StandbyTasks: taskNames(m.Standby),
		Problem: m.Problem,
	}
	for _, t := range in.Threads {
		if t.MemberID == m.MemberID {
			r.Thread, r.State = t.Name, t.State
		}
	}
	return r
}

// Text is the form for shell pipes: one group instance id a line. Dynamic members have none and are left out, and so are fenced
// threads: who removes what is listed here must not remove their successors.
func (r InstancesResponse) Text() string {
	var b strings.Builder
	for _, in := range r.Instances {
		if in.InstanceID != "" && !in.Fenced {
			b.WriteString(in.InstanceID)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func taskNames(ids []taskid.ID) []string {
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		names = append(names, id.String())
	}
	return names
}

// list turns a nil slice into an empty one, so that JSON shows [] and clients need no case for null.
func list(values []string) []string {
	if values == nil {
		return []string{}
	}
	return values
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
