package integration

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/streams"
)

// watchFor is how long two processes with one client id are watched: thirty heartbeats of theirs, and more than there are in
// the minute of a scenario at Kafka's default interval.
const watchFor = 15 * time.Second

// memberIDs tells who has each instance id of a job's group.
func (j job) memberIDs(t *testing.T, client *kgo.Client) map[string]string {
	t.Helper()
	groups, err := kadm.NewClient(client).DescribeGroups(t.Context(), j.AppID)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for _, m := range groups[j.AppID].Members {
		if m.InstanceID != nil {
			ids[*m.InstanceID] = m.MemberID
		}
	}
	return ids
}

// P6, S131: a second process with the same client id takes over, and the first one ends with an error that names the instance and says
// what to do. They do not trade the instance ids, and under exactly-once nothing is lost or counted twice.
func TestFencedProcessStopsAndSaysWhy(t *testing.T) {
	ctx, j, in := patient(t), newJob(t), newInput()
	client := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	follower := j.follow(t)
	first, second := newWorker(t, j, "wc-0", streams.ExactlyOnce), newWorker(t, j, "wc-0", streams.ExactlyOnce)
	first.start(t)
	before := settled(t, ctx, first)
	in.feed(t, client, j, 300)
	if err := follower.Await(ctx, in.fed()); err != nil {
		t.Fatal(err)
	}
	second.start(t)
	select {
	case <-first.Ended():
	case <-ctx.Done():
		t.Fatalf("the fenced process goes on:\n%s", first.Tail(20))
	}
	text, err := os.ReadFile(first.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"wc-0-StreamThread-", j.AppID, "FENCED_INSTANCE_ID", "a client id of its own"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the log of the fenced process does not say %q:\n%s", part, first.Tail(20))
		}
	}
	if first.Err() == nil {
		t.Error("the fenced process ended with status 0")
	}
	after := settled(t, ctx, second)
	if after.Generation != before.Generation+1 { // it comes under another endpoint, which forces one rebalance (S138)
		t.Errorf("generation %d, want one after %d", after.Generation, before.Generation)
	}
	if !maps.EqualFunc(after.Tasks, before.Tasks, slices.Equal[[]string]) {
		t.Errorf("the tasks were %v and are %v", before.Tasks, after.Tasks)
	}
	members := j.memberIDs(t, client)
	for end := time.Now().Add(watchFor); time.Now().Before(end); {
		in.feed(t, client, j, 20)
		if err := follower.Await(ctx, in.fed()); err != nil {
			t.Fatal(err)
		}
		if now := j.memberIDs(t, client); !maps.Equal(now, members) {
			t.Fatalf("the members were %v and are %v", members, now)
		}
	}
	if g := settled(t, ctx, second); !g.Equal(after) {
		t.Errorf("after %v: %+v, was %+v", watchFor, g, after)
	}
	if err := second.Stop(patience); err != nil {
		t.Fatal(err)
	}
	j.compare(t, in)
}
