package integration

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/proc"
	"github.com/millrace-io/millrace/streams"
)

// settled waits until every task has a thread, and nothing has changed for a while.
func settled(t *testing.T, ctx context.Context, workers ...*worker) proc.Group {
	t.Helper()
	rests := make([]proc.REST, len(workers))
	for i, w := range workers {
		rests[i] = w.rest()
	}
	var last proc.Group
	since := time.Now()
	err := workers[0].Await(ctx, "settled group", func() (bool, error) {
		g, err := proc.AskGroup(ctx, rests...)
		if err != nil || !g.Complete(2*len(workers), 2*partitions) || !g.Equal(last) {
			last, since = g, time.Now()
			return false, err
		}
		return time.Since(since) > 700*time.Millisecond, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// P1: a static member that is killed with SIGKILL and comes back within its session gets its tasks back in the same
// generation: nobody rebalances. Its state is still there: only the end of the changelog is restored.
func TestKilledProcessFindsItsTasksAndItsState(t *testing.T) {
	ctx, j, in := patient(t), newJob(t), newInput()
	client := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	follower := j.follow(t)
	workers := []*worker{newWorker(t, j, "wc-0", streams.ExactlyOnce), newWorker(t, j, "wc-1", streams.ExactlyOnce)}
	for _, w := range workers {
		w.start(t)
	}
	before := settled(t, ctx, workers...)
	in.feed(t, client, j, 4000)
	if err := follower.Await(ctx, in.fed()); err != nil {
		t.Fatal(err)
	}
	victim := keeper(t, before, workers)
	awaitQuietDisk(t, ctx, victim)
	in.feed(t, client, j, 5) // something that is not on its disk
	if err := follower.Await(ctx, in.fed()); err != nil {
		t.Fatal(err)
	}
	victim.Kill()
	in.feed(t, client, j, 100)
	victim.start(t)
	victim.awaitReady(t, ctx)
	after := settled(t, ctx, workers...)
	if !after.Equal(before) {
		t.Errorf("before the kill: %+v, after: %+v", before, after)
	}
	restored, err := victim.rest().Metric(ctx, "millrace_restored_records_total")
	if err != nil {
		t.Fatal(err)
	}
	if state := stateOf(before, victim, in); restored == 0 || restored > float64(state)/10 {
		t.Errorf("%v of a state of %d words were restored, want the end of the changelog only", restored, state)
	}
	in.feed(t, client, j, 100)
	if err := follower.Await(ctx, in.fed()); err != nil {
		t.Fatal(err)
	}
	for _, w := range workers {
		if err := w.Stop(patience); err != nil {
			t.Fatal(err)
		}
	}
	j.compare(t, in)
}

// keeper is a worker that keeps counts.
func keeper(t *testing.T, g proc.Group, workers []*worker) *worker {
	t.Helper()
	for _, w := range workers {
		if len(countedBy(g, w)) > 0 {
			return w
		}
	}
	t.Fatalf("no worker keeps counts: %+v", g)
	return nil
}

// countedBy lists the partitions whose counts a worker keeps: the tasks of the lines are named after their topic.
func countedBy(g proc.Group, w *worker) (tasks []string) {
	for id, list := range g.Tasks {
		for _, task := range list {
			if strings.HasPrefix(id, w.cfg.ClientID+"-") && !strings.HasPrefix(task, w.cfg.Job.Lines) {
				tasks = append(tasks, task)
			}
		}
	}
	return tasks
}

// stateOf is the number of words whose counts a worker keeps.
func stateOf(g proc.Group, w *worker, in *input) int {
	words := map[string]bool{}
	wanted := in.wanted()
	for _, task := range countedBy(g, w) {
		for _, r := range wanted[task[len(task)-1]-'0'] {
			words[string(r.Key)] = true
		}
	}
	return len(words)
}

// P2: under exactly-once a process may be killed at any moment, again and again: output and state equal the replay.
// The program chaos does this at length and at chosen points; here a few random kills run on any cluster.
func TestExactlyOnceSurvivesRandomKills(t *testing.T) {
	kills := 12
	if testing.Short() {
		kills = 4
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	ctx, j, in := patient(t), newJob(t), newInput()
	client := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	follower := j.follow(t)
	w := newWorker(t, j, "wc-0", streams.ExactlyOnce)
	w.cfg.FlushEvery = 200 * time.Millisecond
	for range kills {
		w.start(t)
		in.feed(t, client, j, 200)
		select {
		case <-time.After(time.Duration(rng.IntN(1200)) * time.Millisecond): // the moment is the point
		case <-w.Ended():
			t.Fatalf("the process ended by itself: %v\n%s", w.Err(), w.Tail(20))
		}
		w.Kill()
	}
	w.start(t)
	w.awaitReady(t, ctx) // it may have nothing left to count
	if err := follower.Await(ctx, in.fed()); err != nil {
		t.Fatalf("%v\n%s", err, w.Tail(20))
	}
	if err := w.Stop(patience); err != nil {
		t.Fatal(err)
	}
	j.compare(t, in)
}
