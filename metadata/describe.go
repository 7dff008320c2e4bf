package metadata

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/membership/codec"
)

// Describe asks the group's coordinator for the members and makes a snapshot of them. plan tells which stores and source
// topics the tasks have; with nil (a tool that has no topology) stores stay empty and partitions are those that the leader
// wrote into the assignments. A group that does not exist is a snapshot in state Dead without instances.
func Describe(ctx context.Context, adm *kadm.Client, group string, plan *topology.Plan) (Snapshot, error) {
	d, err := DescribeGroup(ctx, adm, group)
	if err != nil {
		return Snapshot{}, err
	}
	broker, err := adm.BrokerMetadata(ctx)
	if err != nil {
		return Snapshot{}, fmt.Errorf("ask for the cluster id: %w", err)
	}
	s := snapshotOf(d, plan)
	s.ClusterID, s.Taken = broker.Cluster, time.Now()
	return s, nil
}

// DescribeGroup asks the group's coordinator for the members. A group that does not exist, or has another protocol than
// classic, is one in state Dead with the coordinator's word for it in ErrMessage.
func DescribeGroup(ctx context.Context, adm *kadm.Client, group string) (kadm.DescribedGroup, error) {
	described, err := adm.DescribeGroups(ctx, group)
	if sharded, ok := errors.AsType[*kadm.ShardErrors](err); ok && len(sharded.Errs) == 1 {
		err = sharded.Errs[0].Err // one group is one request
	}
	d, ok := described[group]
	switch {
	case err != nil:
	case !ok:
		err = errors.New("the coordinator's answer does not name it")
	case errors.Is(d.Err, kerr.GroupIDNotFound): // brokers before DescribeGroups version 6 say "Dead" instead
		return kadm.DescribedGroup{Group: group, State: stateDead, ErrMessage: d.ErrMessage}, nil
	default:
		err = d.Err
	}
	if err != nil {
		return kadm.DescribedGroup{}, fmt.Errorf("describe group %q: %w", group, err)
	}
	return d, nil
}

// snapshotOf makes a snapshot of a coordinator's answer. The generation is the highest in the assignments, in a stable
// group that of the group; between two generations it is not known.
func snapshotOf(d kadm.DescribedGroup, plan *topology.Plan) Snapshot {
	s := Snapshot{Group: d.Group, State: d.State, Generation: UnknownGeneration}
	if plan != nil {
		s.ApplicationID = plan.AppID
	}
	processes := map[string]*Instance{}
	for _, m := range d.Members {
		r := readMember(m, d.State)
		if d.State == stateStable {
			s.Generation = max(s.Generation, r.generation)
		}
		in, ok := processes[r.processKey()]
		if !ok {
			in = &Instance{Host: r.endpoint, ProcessID: r.processID, ClientID: r.clientID}
			processes[r.processKey()] = in
		}
		in.addMember(r.Member)
		if plan == nil {
			in.TopicPartitions = append(in.TopicPartitions, r.sources...)
		}
	}
	for _, in := range processes {
		if plan != nil {
			in.resolve(plan)
		}
		in.finish()
		s.Instances = append(s.Instances, *in)
	}
	sortInstances(s.Instances)
	return s
}

// States of a group, in the coordinator's words.
const (
	stateStable = "Stable"
	stateDead   = "Dead"
)

// memberRead is one member with what its bytes say about its process.
type memberRead struct {
	Member
	processID, clientID, endpoint string
	sources                       []TopicPartition // as the leader wrote them
	generation                    int32
}

// processKey tells processes apart: by their persisted id; by the client id while the coordinator does not hand out the
// id; a member that is not ours stands for itself.
func (r memberRead) processKey() string {
	switch {
	case r.processID != "":
		return "process " + r.processID
	case r.clientID != r.ClientID:
		return "client " + r.clientID
	default:
		return "member " + r.MemberID
	}
}

func readMember(m kadm.DescribedGroupMember, groupState string) memberRead {
	r := memberRead{
		Member:   Member{MemberID: m.MemberID, ClientID: m.ClientID, ClientHost: m.ClientHost},
		clientID: processClientID(m.ClientID), generation: UnknownGeneration,
	}
	if m.InstanceID != nil {
		r.InstanceID = *m.InstanceID
	}
	join, ok := m.Join.AsConsumer()
	switch {
	case groupState != stateStable && (!ok || len(join.UserData) == 0):
		// A coordinator hands out subscriptions and assignments of stable groups only.
		r.Problem = fmt.Sprintf("the group is in state %s: the coordinator tells tasks and hosts when it is %s again", groupState, stateStable)
		return r
	case !ok:
		r.Problem = "the member does not speak the consumer protocol: another application uses this group"
		return r
	}
	subscription, err := codec.DecodeSubscription(join.UserData)
	if err != nil {
		r.Problem = fmt.Sprintf("subscription: %v", err)
		return r
	}
	r.processID, r.clientID, r.endpoint = subscription.ProcessID, subscription.ClientID, subscription.Endpoint
	r.readAssignment(m)
	return r
}

func (r *memberRead) readAssignment(m kadm.DescribedGroupMember) {
	assigned, ok := m.Assigned.AsConsumer()
	if !ok {
		return
	}
	assignment, err := codec.DecodeAssignment(assigned.UserData)
	if err != nil {
		r.Problem = fmt.Sprintf("assignment: %v", err)
		return
	}
	r.Active, r.Standby, r.generation = assignment.Active, assignment.Standby, assignment.Generation
	for _, t := range assigned.Topics {
		for _, p := range t.Partitions {
			r.sources = append(r.sources, TopicPartition{Topic: t.Topic, Partition: p})
		}
	}
}

// processClientID cuts the suffix that a stream thread's consumer adds to its process' client id. Another client's id has
// no such suffix and comes back whole.
func processClientID(consumer string) string {
	const infix = "-StreamThread-"
	if at := strings.LastIndex(consumer, infix); at > 0 && strings.HasSuffix(consumer, "-consumer") {
		return consumer[:at]
	}
	return consumer
}

// resolve adds the stores and the source partitions of the active tasks. A task that the plan does not know belongs to
// another version of the topology, as in a rolling upgrade; its stores are not known here.
func (in *Instance) resolve(plan *topology.Plan) {
	for _, id := range in.Active {
		sub, ok := plan.Sub(id.Subtopology)
		if !ok {
			continue
		}
		for _, store := range sub.Stores {
			in.Stores = append(in.Stores, store.Name)
		}
		for _, source := range sub.Sources {
			in.TopicPartitions = append(in.TopicPartitions, TopicPartition{Topic: source.Topic, Partition: id.Partition})
		}
	}
}
