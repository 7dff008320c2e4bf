package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/metadata"
	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
)

// steady waits until the threads of all applications run so many tasks together in one generation, and returns it with who has
// which tasks.
func steady(t *testing.T, ctx context.Context, tasks int, apps ...*app) (generation int32, placed map[string]string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		n := 0
		generation, placed = -1, map[string]string{}
		even := true
		for _, a := range apps {
			even = even && a.State() == streams.Running
			for _, s := range a.Threads() {
				even = even && s.State == "RUNNING" && (generation < 0 || s.Generation == generation)
				generation = s.Generation
				n += len(s.Active)
				placed[s.InstanceID] = fmt.Sprint(s.Active)
			}
		}
		if even && n == tasks {
			return generation, placed
		}
		for _, a := range apps {
			select {
			case <-a.ended:
				t.Fatalf("an application ended: %v", a.err)
			default:
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the group does not settle; %d of %d tasks run: %v", n, tasks, placed)
		}
	}
}

// beyond waits until all threads of the applications are in a later generation than before.
func beyond(t *testing.T, ctx context.Context, before int32, apps ...*app) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, a := range apps {
		for !slices.ContainsFunc(a.Threads(), func(s metadata.ThreadStatus) bool { return s.Generation > before }) {
			select {
			case <-tick.C:
			case <-ctx.Done():
				t.Fatalf("nobody came beyond generation %d", before)
			}
		}
	}
}

// counter adds up a metric of an application over its labels.
func (a *app) counter(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := a.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
			return sum
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// members lists the instance ids of a job's group.
func (j job) members(t *testing.T) (ids []string) {
	t.Helper()
	groups, err := kadm.NewClient(newClient(t)).DescribeGroups(t.Context(), j.AppID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range groups[j.AppID].Members {
		if m.InstanceID != nil {
			ids = append(ids, strings.TrimSuffix(*m.InstanceID, "-consumer"))
		}
	}
	slices.Sort(ids)
	return ids
}

// P1, S132: three processes with three static threads each are restarted one after the other, three times, under load and within their
// sessions: the generation stays, every thread has its tasks again, and no state is restored.
func TestRollingBounceKeepsTheGeneration(t *testing.T) {
	ctx, j, in := patient(t), newJob(t), newInput()
	client := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	follower := j.follow(t)
	apps, configs := make([]*app, 3), make([]streams.Config, 3)
	run := func(i int) {
		b, _ := j.topology()
		apps[i] = start(t, b, configs[i])
	}
	for i := range apps {
		configs[i] = j.config(fmt.Sprintf("wc-%d", i), t.TempDir(), streams.ExactlyOnce)
		configs[i].Threads = 3
		run(i)
	}
	generation, placed := steady(t, ctx, 2*partitions, apps...)
	for round := range 3 {
		for i := range apps {
			in.feed(t, client, j, 100)
			apps[i].close(t)
			in.feed(t, client, j, 100) // while it is away
			run(i)
			after, placedAfter := steady(t, ctx, 2*partitions, apps...)
			if after != generation {
				t.Fatalf("round %d: generation %d after the restart of process %d, want %d as from the first", round, after, i, generation)
			}
			for id, tasks := range placed {
				if placedAfter[id] != tasks {
					t.Errorf("round %d: %s has %s after the restart of process %d, had %s", round, id, placedAfter[id], i, tasks)
				}
			}
			if n := apps[i].counter(t, "millrace_restored_records_total"); n != 0 {
				t.Errorf("round %d: process %d restored %v records after a clean stop", round, i, n)
			}
		}
	}
	if err := follower.Await(ctx, in.fed()); err != nil {
		t.Fatal(err)
	}
	for _, a := range apps {
		a.close(t)
	}
	j.compare(t, in)
}

// S130, S136: by default static members keep their places when their process closes; with Leave all of them go in one batch, and the
// others have their tasks one generation later.
func TestCloseModes(t *testing.T) {
	ctx, j := patient(t), newJob(t)
	run := func(name string, threads int) *app {
		cfg := j.config(name, t.TempDir(), streams.AtLeastOnce)
		cfg.Threads = threads
		b, _ := j.topology()
		return start(t, b, cfg)
	}
	stays := run("wc-0", 1)
	steady(t, ctx, 2*partitions, stays)
	goes := run("wc-1", 3)
	before, _ := steady(t, ctx, 2*partitions, stays, goes)
	if err := goes.Close(ctx, streams.Leave); err != nil {
		t.Fatal(err)
	}
	beyond(t, ctx, before, stays)
	if after, _ := steady(t, ctx, 2*partitions, stays); after != before+1 {
		t.Errorf("generation %d after %d, want one step", after, before)
	}
	stays.close(t)
	if got := j.members(t); !slices.Equal(got, []string{"wc-0-StreamThread-1"}) {
		t.Errorf("the group has %v, want the static member that closed without leaving", got)
	}
}

// S138: a process that comes back under another endpoint forces one rebalance, as its place in the group tells of the old one; a
// process that comes back as it was forces none.
func TestChangedEndpointForcesOneRebalance(t *testing.T) {
	ctx, j := patient(t), newJob(t)
	configs := []streams.Config{j.config("wc-0", t.TempDir(), streams.AtLeastOnce), j.config("wc-1", t.TempDir(), streams.AtLeastOnce)}
	run := func(i int, endpoint string) *app {
		configs[i].AdvertisedEndpoint = endpoint
		b, _ := j.topology()
		return start(t, b, configs[i])
	}
	first, second := run(0, "host-0:80"), run(1, "host-1:80")
	before, _ := steady(t, ctx, 2*partitions, first, second)
	second.close(t)
	second = run(1, "elsewhere:80")
	beyond(t, ctx, before, first, second)
	after, _ := steady(t, ctx, 2*partitions, first, second)
	if after != before+1 {
		t.Errorf("generation %d after %d, want one step", after, before)
	}
	second.close(t)
	second = run(1, "elsewhere:80")
	if again, _ := steady(t, ctx, 2*partitions, first, second); again != after {
		t.Errorf("generation %d after a restart without a change, want %d", again, after)
	}
	first.close(t)
	second.close(t)
}

// S139: a source topic grows: its new partitions are read after one rebalance, though both processes notice.
func TestGrownTopicIsRead(t *testing.T) {
	ctx, j := patient(t), newJob(t)
	var apps []*app
	for i := range 2 {
		cfg := j.config(fmt.Sprintf("wc-%d", i), t.TempDir(), streams.AtLeastOnce)
		cfg.MetadataMaxAge = 200 * time.Millisecond
		b := streams.NewBuilder()
		b.Stream(j.Lines, serde.Bytes, serde.Bytes).To(j.Counts, serde.Bytes, serde.Bytes)
		apps = append(apps, start(t, b, cfg))
		steady(t, ctx, partitions, apps...)
	}
	before, _ := steady(t, ctx, partitions, apps...)
	client := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	answers, err := kadm.NewClient(client).UpdatePartitions(ctx, 2*partitions, j.Lines)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	beyond(t, ctx, before, apps...)
	if after, _ := steady(t, ctx, 2*partitions, apps...); after != before+1 {
		t.Errorf("generation %d after %d, want one step", after, before)
	}
	writer := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner())) // it has not seen the topic when it was small
	for p := range 2 * partitions {
		if err := writer.ProduceSync(ctx, &kgo.Record{Topic: j.Lines, Partition: int32(p), Value: fmt.Append(nil, p)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	reader := newClient(t, kgo.ConsumeTopics(j.Counts), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	missing := 2 * partitions
	for missing > 0 {
		fetches := reader.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d records did not come through", missing, 2*partitions)
		}
		missing -= fetches.NumRecords()
	}
	for _, a := range apps {
		a.close(t)
	}
}
