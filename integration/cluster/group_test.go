package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A member is a group member made of raw requests, so that a test decides what is sent and when.
type member struct {
	cl         *kgo.Client
	group      string
	instance   *string // nil: dynamic
	id         string
	generation int32
	leader     bool
	skip       bool
	members    []kmsg.JoinGroupResponseMember
}

func newMember(t testing.TB, c *cluster.Cluster, group, instance string) *member {
	m := &member{cl: client(t, c, kgo.ClientID("cl-"+instance)), group: group, generation: -1}
	if instance != "" {
		m.instance = &instance
	}
	return m
}

func (m *member) join(ctx context.Context) error {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.InstanceID = m.group, m.id, m.instance
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 45_000, 60_000
	req.ProtocolType = "consumer"
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "millrace", []byte("subscription of "+m.group)
	req.Protocols = append(req.Protocols, protocol)
	for {
		resp, err := req.RequestWith(ctx, m.cl)
		if err != nil {
			return err
		}
		if resp.ErrorCode == kerr.MemberIDRequired.Code {
			req.MemberID = resp.MemberID
			continue
		}
		m.id, m.generation, m.skip, m.members = resp.MemberID, resp.Generation, resp.SkipAssignment, resp.Members
		m.leader = resp.LeaderID == resp.MemberID
		return kerr.ErrorForCode(resp.ErrorCode)
	}
}

// sync hands in the assignments when this member leads: each member gets its instance id as bytes.
func (m *member) sync(ctx context.Context) (assignment string, err error) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = m.group, m.id, m.instance, m.generation
	req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("millrace")
	if m.leader && !m.skip {
		for _, other := range m.members {
			a := kmsg.NewSyncGroupRequestGroupAssignment()
			a.MemberID, a.MemberAssignment = other.MemberID, []byte("for "+*other.InstanceID)
			req.GroupAssignment = append(req.GroupAssignment, a)
		}
	}
	resp, err := req.RequestWith(ctx, m.cl)
	if err != nil {
		return "", err
	}
	return string(resp.MemberAssignment), kerr.ErrorForCode(resp.ErrorCode)
}

func (m *member) heartbeat(ctx context.Context) error {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = m.group, m.id, m.instance, m.generation
	resp, err := req.RequestWith(ctx, m.cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

// pair brings two static members, a and b, into one stable generation.
func pair(t *testing.T, c *cluster.Cluster, group string) (a, b *member) {
	t.Helper()
	ctx := deadline(t)
	a, b = newMember(t, c, group, "a"), newMember(t, c, group, "b")
	if err := a.join(ctx); err != nil {
		t.Fatal(err)
	}
	joined := make(chan error, 1)
	go func() { joined <- b.join(ctx) }()
	// a is told to rejoin once b's request is in; the heartbeat is the signal, not the time.
	for !errors.Is(a.heartbeat(ctx), kerr.RebalanceInProgress) {
		if _, err := a.sync(ctx); err != nil && !errors.Is(err, kerr.RebalanceInProgress) {
			t.Fatal(err)
		}
	}
	if err := a.join(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	assigned := make(chan error, 1)
	go func() { _, err := b.sync(ctx); assigned <- err }()
	if got, err := a.sync(ctx); err != nil || got != "for a" {
		t.Fatalf("a's assignment is %q, %v", got, err)
	}
	if err := <-assigned; err != nil {
		t.Fatal(err)
	}
	if a.generation != b.generation {
		t.Fatalf("a is in generation %d and b in %d", a.generation, b.generation)
	}
	return a, b
}

// restart joins with an instance id as a new process does, and expects the old assignment without a rebalance.
func restart(t *testing.T, c *cluster.Cluster, old *member) *member {
	t.Helper()
	ctx := deadline(t)
	again := newMember(t, c, old.group, *old.instance)
	if err := again.join(ctx); err != nil {
		t.Fatal(err)
	}
	if again.id == old.id || again.generation != old.generation {
		t.Fatalf("restart of %s: id %q, generation %d; was %q, %d", *old.instance, again.id, again.generation, old.id, old.generation)
	}
	if got, err := again.sync(ctx); err != nil || got != "for "+*old.instance {
		t.Fatalf("assignment after the restart is %q, %v", got, err)
	}
	return again
}

func TestStaticRestartKeepsGeneration(t *testing.T) {
	c := start(t)
	ctx := deadline(t)
	a, b := pair(t, c, "g")
	again := restart(t, c, b)
	leader := restart(t, c, a)
	if !leader.leader || !leader.skip {
		t.Errorf("the leader after its restart: leader %v, skip assignment %v; want both", leader.leader, leader.skip)
	}
	for _, old := range []*member{a, b} {
		if err := old.heartbeat(ctx); !errors.Is(err, kerr.FencedInstanceID) {
			t.Errorf("heartbeat of the replaced %s: %v, want FENCED_INSTANCE_ID", *old.instance, err)
		}
	}
	if err := again.heartbeat(ctx); err != nil {
		t.Errorf("heartbeat of the restarted member: %v", err)
	}
}

// TestParkedJoinHoldsItsConnectionOnly: answers keep the order of their requests on a connection, and no other waits.
func TestParkedJoinHoldsItsConnectionOnly(t *testing.T) {
	c := start(t, cluster.Topic("lines", 1))
	ctx := deadline(t)
	a := newMember(t, c, "g", "a")
	if err := a.join(ctx); err != nil {
		t.Fatal(err)
	}
	conn := dialRaw(t, c)
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.InstanceID, join.ProtocolType = 9, "g", kmsg.StringPtr("b"), "consumer"
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 45_000, 60_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "millrace"}}
	conn.send(t, 1, join)
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Version = 12
	conn.send(t, 2, metadata)
	list := kmsg.NewPtrListGroupsRequest()
	list.Version = 4
	conn.send(t, 3, list)

	for !errors.Is(a.heartbeat(ctx), kerr.RebalanceInProgress) {
		if _, err := a.sync(ctx); err != nil && !errors.Is(err, kerr.RebalanceInProgress) {
			t.Fatal(err)
		}
	}
	produce(t, client(t, c), "lines", "v", 1) // others are served
	if err := a.join(ctx); err != nil {
		t.Fatal(err)
	}
	for want := int32(1); want <= 3; want++ {
		if got := conn.correlation(t); got != want {
			t.Fatalf("answer %d came in the place of %d", got, want)
		}
	}
}

func TestOrdinaryGroupConsumer(t *testing.T) {
	c := start(t, cluster.Topic("lines", 2))
	ctx := deadline(t)
	produce(t, client(t, c), "lines", "v", 100)
	opts := append(fromStart("lines"), kgo.ConsumerGroup("readers"), kgo.InstanceID("r-1"), kgo.DisableAutoCommit())
	cl := client(t, c, opts...)
	consume(t, cl, 100)
	if err := cl.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
	adm := kadm.NewClient(client(t, c))
	described, err := adm.DescribeGroups(ctx, "readers")
	if err != nil {
		t.Fatal(err)
	}
	g := described["readers"]
	if g.State != "Stable" || len(g.Members) != 1 || g.Members[0].InstanceID == nil || *g.Members[0].InstanceID != "r-1" || g.Members[0].ClientHost != "/127.0.0.1" {
		t.Fatalf("described as %+v", g)
	}
	listed, err := adm.ListGroups(ctx)
	if err != nil || listed["readers"].State != "Stable" {
		t.Fatalf("listed as %+v, %v", listed, err)
	}
	lag, err := adm.Lag(ctx, "readers")
	if readers := lag["readers"]; err != nil || readers.Error() != nil || readers.Lag.Total() != 0 {
		t.Fatalf("lag is %+v, %v", lag, err)
	}
	if _, err := adm.DeleteGroup(ctx, "readers"); !errors.Is(err, kerr.NonEmptyGroup) {
		t.Fatalf("delete of a group with a member: %v, want NON_EMPTY_GROUP", err)
	}
	cl.Close()
	left, err := adm.LeaveGroup(ctx, kadm.LeaveGroup("readers").InstanceIDs("r-1").Reason("test"))
	if err != nil || !left.Ok() {
		t.Fatalf("leave by instance id: %+v, %v", left, err)
	}
	if _, err := adm.DeleteGroup(ctx, "readers"); err != nil {
		t.Fatalf("delete of the empty group: %v", err)
	}
	if listed, err := adm.ListGroups(ctx); err != nil || len(listed) != 0 {
		t.Fatalf("groups after the delete: %v, %v", listed, err)
	}
}

func TestTopicDeletionForgetsOffsets(t *testing.T) {
	c := start(t)
	ctx := deadline(t)
	adm := kadm.NewClient(client(t, c))
	create := func() {
		t.Helper()
		if _, err := adm.CreateTopic(ctx, 1, 1, nil, "short"); err != nil {
			t.Fatal(err)
		}
	}
	create()
	commit(t, adm, "g", "short", 7)
	if got := fetched(t, adm, "g"); !cmp.Equal(got, map[string]int64{"short-0": 7}) {
		t.Fatalf("offsets %v", got)
	}
	if _, err := adm.DeleteTopics(ctx, "short"); err != nil {
		t.Fatal(err)
	}
	create()
	for got := fetched(t, adm, "g"); len(got) != 0; got = fetched(t, adm, "g") { // they go when the log says so
		if ctx.Err() != nil {
			t.Fatalf("offsets of the deleted topic are still there: %v", got)
		}
	}
	resp, err := adm.DeleteTopics(ctx, "__consumer_offsets")
	if err == nil {
		err = resp.Error()
	}
	if !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Fatalf("delete of the offsets topic: %v, want TOPIC_AUTHORIZATION_FAILED", err)
	}
}

// commit commits one offset as a client without membership does.
func commit(t testing.TB, adm *kadm.Client, group, topic string, at int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, at, -1)
	if err := adm.CommitAllOffsets(deadline(t), group, offsets); err != nil {
		t.Fatal(err)
	}
}

// fetched returns a group's committed offsets by "<topic>-<partition>".
func fetched(t testing.TB, adm *kadm.Client, group string) map[string]int64 {
	t.Helper()
	resp, err := adm.FetchOffsets(deadline(t), group)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	resp.Each(func(o kadm.OffsetResponse) { got[fmt.Sprintf("%s-%d", o.Topic, o.Partition)] = o.At })
	return got
}

func TestGoroutinesEnd(t *testing.T) {
	before := goroutines()
	c, err := cluster.Start(cluster.Topic("lines", 1))
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	produce(t, cl, "lines", "v", 10)
	m := &member{cl: cl, group: "g", generation: -1}
	if err := m.join(deadline(t)); err != nil {
		t.Fatal(err)
	}
	parked := dialRaw(t, c) // a connection that waits for an answer for ever
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group = 3, "g"
	parked.send(t, 1, sync)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	cl.Close()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for limit := deadline(t); ; {
		left := leaked(before)
		if left == "" {
			return
		}
		select {
		case <-ticker.C:
		case <-limit.Done():
			t.Fatalf("still running:\n%s", left)
		}
	}
}
