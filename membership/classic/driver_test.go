package classic

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/codec"
)

func TestFirstJoinGetsEveryTask(t *testing.T) {
	w := newWorld(t)
	a := w.join(w.config("wc-0", true))
	got := a.assigned()
	if got.Generation != 1 || len(got.Active) != partitions {
		t.Errorf("got %v", got)
	}
	token, ok := a.Token()
	want := membership.CommitToken{Group: w.group, MemberID: token.MemberID, InstanceID: "wc-0-StreamThread-1-consumer", Generation: 1}
	if !ok || token != want || token.MemberID == "" {
		t.Errorf("token %+v, %v", token, ok)
	}
	if diff := cmp.Diff([]string{"wc-0-StreamThread-1-consumer"}, w.instances()); diff != "" {
		t.Error(diff)
	}
}

// Kafka's tools must be able to read topics and partitions of our members.
func TestKafkasToolsReadTheGroup(t *testing.T) {
	w := newWorld(t)
	w.join(w.config("wc-0", true)).assigned()
	g := w.described()
	if g.ProtocolType != "consumer" || g.Protocol != codec.ProtocolName || g.State != "Stable" || len(g.Members) != 1 {
		t.Fatalf("described as %+v", g)
	}
	joined, ok := g.Members[0].Join.AsConsumer()
	if !ok || !slices.Equal(joined.Topics, []string{w.topic}) {
		t.Errorf("subscription %+v", joined)
	}
	assigned, ok := g.Members[0].Assigned.AsConsumer()
	if !ok || len(assigned.Topics) != 1 || len(assigned.Topics[0].Partitions) != partitions {
		t.Errorf("assignment %+v", assigned)
	}
	s, err := codec.DecodeSubscription(joined.UserData)
	if err != nil || s.Endpoint != "wc-0:80" {
		t.Errorf("user data %+v, %v", s, err)
	}
}

// Three members join one after the other: tasks move cooperatively, and end up spread without overlap.
func TestScaleOut(t *testing.T) {
	w := newWorld(t)
	a := w.join(w.config("wc-0", true))
	a.assignedTasks(4)
	b := w.join(w.config("wc-1", true))
	got := []membership.Assigned{a.assignedTasks(2), b.assignedTasks(2)}
	if n := w.union(got...); n != partitions {
		t.Errorf("%d tasks assigned in %v", n, got)
	}
	c := w.join(w.config("wc-2", false))
	c.assignedTasks(1)
}

// P1: static members that are killed and come back within the session timeout change neither the generation nor any
// assignment, and nobody else notices; the leader too.
func TestRollingBounceKeepsTheGeneration(t *testing.T) {
	w := newWorld(t)
	peers := map[string]*peer{}
	before := map[string]membership.Assigned{}
	for _, name := range names(2) {
		peers[name] = w.join(w.config(name, true))
		peers[name].assigned()
	}
	for i, a := range w.settle(2, peers["wc-0"], peers["wc-1"]) {
		before[names(2)[i]] = a
	}
	for _, name := range names(2) {
		peers[name].kill()
		peers[name] = w.join(w.config(name, true))
		got := peers[name].assigned()
		if diff := cmp.Diff(before[name], got); diff != "" {
			t.Errorf("%s: -before +after\n%s", name, diff)
		}
	}
	for _, p := range peers {
		p.beatsOnce()
		p.quiet()
	}
}

// P6: of two processes with one instance id the older one stops, says why, and stays away; the newer one works.
func TestDuplicateFencesTheOlder(t *testing.T) {
	w := newWorld(t)
	older := w.join(w.config("wc-0", true))
	older.assigned()
	oldToken, _ := older.Token()
	newer := w.join(w.config("wc-0", true))
	if got := newer.assigned(); got.Generation != 1 || len(got.Active) != partitions {
		t.Errorf("the newer one got %v", got)
	}
	fatal, ok := older.next().(membership.Fatal)
	if !ok {
		t.Fatalf("the older one got %v", fatal)
	}
	want := &membership.FencedError{InstanceID: oldToken.InstanceID, Group: w.group, MemberID: oldToken.MemberID, Request: membership.Heartbeat}
	got, ok := errors.AsType[*membership.FencedError](fatal.Err)
	if !ok || *got != *want {
		t.Errorf("got %v, want %v", fatal.Err, want)
	}
	if err := older.Commit(t.Context(), []Offset{{Topic: w.topic, At: 1, LeaderEpoch: -1}}); !errors.Is(err, fatal.Err) {
		t.Errorf("commit of the fenced member: %v", err)
	}
	if _, ok := older.Token(); ok {
		t.Error("a fenced member has a token")
	}
	newer.beatsOnce()
	newer.quiet()
}

func TestCloseModes(t *testing.T) {
	for _, c := range []struct {
		name   string
		static bool
		mode   LeaveMode
		stays  bool
	}{
		{"static default", true, LeaveDefault, true},
		{"static leave", true, Leave, false},
		{"dynamic default", false, LeaveDefault, false},
		{"dynamic remain", false, Remain, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			p := w.join(w.config("wc-0", c.static))
			p.assigned()
			if err := p.Close(t.Context(), c.mode); err != nil {
				t.Fatal(err)
			}
			if stays := len(w.instances()) == 1; stays != c.stays {
				t.Errorf("stays=%v, want %v", stays, c.stays)
			}
			if _, open := <-p.Events(); open {
				t.Error("an event came after Close")
			}
			p.RevokeDone() // must not hang
			p.Rejoin("too late")
		})
	}
}

// A member that an operator removes while it lives has lost its tasks and joins as a new one.
func TestRemovedMemberJoinsAgain(t *testing.T) {
	w := newWorld(t)
	p := w.join(w.config("wc-0", true))
	p.assigned()
	before, _ := p.Token()
	w.remove(before.InstanceID)
	if lost, ok := p.next().(membership.Lost); !ok {
		t.Fatalf("got %v, want Lost", lost)
	}
	if got := p.assigned(); len(got.Active) != partitions || got.Generation <= before.Generation {
		t.Errorf("got %v", got)
	}
	if after, ok := p.Token(); !ok || after.MemberID == before.MemberID {
		t.Errorf("token %+v, %v", after, ok)
	}
}

// What the leader cannot know after a static restart makes the member join again, once.
func TestChangedEndpointForcesOneRebalance(t *testing.T) {
	w := newWorld(t)
	p := w.join(w.config("wc-0", true))
	p.assigned()
	p.kill()
	cfg := w.config("wc-0", true)
	cfg.Subscription = func() codec.Subscription {
		return codec.Subscription{ProcessID: "process-wc-0", ClientID: "wc-0", Endpoint: "elsewhere:80", TopologyHash: 1}
	}
	again := w.join(cfg)
	if got := again.assigned(); got.Generation != 1 {
		t.Errorf("first %v, want the old assignment", got)
	}
	if got := again.assigned(); got.Generation != 2 || len(got.Active) != partitions {
		t.Errorf("then %v, want generation 2", got)
	}
	again.beatsOnce()
	again.quiet()
}

// A leader that comes back is told to skip the assignment; if there is more to assign than before, it asks for it.
func TestReturningLeaderNoticesNewTasks(t *testing.T) {
	w := newWorld(t)
	p := w.join(w.config("wc-0", true))
	p.assigned()
	p.kill()
	w.setTasks(partitions + 2)
	again := w.join(w.config("wc-0", true))
	if got := again.assigned(); got.Generation != 1 || len(got.Active) != partitions {
		t.Errorf("first %v, want the old assignment", got)
	}
	if got := again.assigned(); got.Generation != 2 || len(got.Active) != partitions+2 {
		t.Errorf("then %v, want all tasks in generation 2", got)
	}
}

func TestRejoinPlansAnew(t *testing.T) {
	w := newWorld(t)
	a, b := w.join(w.config("wc-0", true)), w.join(w.config("wc-1", true))
	w.settle(2, a, b)
	w.setTasks(partitions + 2)
	b.Rejoin("the topic has grown")
	if n := w.union(a.assignedTasks(3), b.assignedTasks(3)); n != partitions+2 {
		t.Errorf("%d tasks assigned", n)
	}
}

// Nothing waits for a rebalance but the rebalance: while one thread takes its time to release its tasks, it commits,
// and so does a member whose join is parked because the group waits for that thread.
func TestCommitDuringARebalance(t *testing.T) {
	w := newWorld(t)
	cfg := w.config("wc-0", true)
	cfg.Client = w.client()
	slow, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close(context.Background(), Remain)
	if _, ok := (<-slow.Events()).(membership.Assigned); !ok {
		t.Fatal("no assignment")
	}
	other := w.join(w.config("wc-1", true))
	revoked, ok := (<-slow.Events()).(membership.Revoked)
	if !ok {
		t.Fatal("no revocation")
	}
	other.assigned()
	w.join(w.config("wc-2", true))
	for other.view.Load().settled { // until it has heard of the rebalance and its join is parked
		runtime.Gosched()
	}

	offset := Offset{Topic: w.topic, Partition: revoked.Tasks[0].Partition, At: 7, LeaderEpoch: -1}
	for name, d := range map[string]*Driver{"the thread that releases": slow, "the parked member": other.Driver} {
		if err := d.Commit(t.Context(), []Offset{offset}); err != nil {
			t.Errorf("commit of %s: %v", name, err)
		}
	}
	if g := w.described(); g.State != "PreparingRebalance" {
		t.Errorf("the group is %s", g.State)
	}
	slow.RevokeDone()
	if a, ok := (<-slow.Events()).(membership.Assigned); !ok || slices.Contains(a.Active, revoked.Tasks[0]) {
		t.Errorf("after the release: %v", a)
	}
}

func TestSessionTimeoutOutOfBounds(t *testing.T) {
	w := newWorld(t)
	cfg := w.config("wc-0", true)
	cfg.SessionTimeout = time.Hour
	p := w.join(cfg)
	fatal, ok := p.next().(membership.Fatal)
	if !ok {
		t.Fatal("no fatal event")
	}
	e, ok := errors.AsType[*membership.SessionTimeoutError](fatal.Err)
	if !ok || e.Timeout != time.Hour || e.Group != w.group || e.Min <= 0 || e.Max <= e.Min || e.Max >= time.Hour {
		t.Errorf("got %v", fatal.Err)
	}
}
