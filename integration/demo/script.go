package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/check"
	"github.com/millrace-io/millrace/integration/proc"
)

// script is the demonstration, step by step.
func (d *demo) script(ctx context.Context) error {
	if err := d.open(ctx); err != nil {
		return err
	}
	follower, err := check.Follow(counts, kgo.SeedBrokers(d.broker), d.isolation())
	if err != nil {
		return err
	}
	defer follower.Close()
	feed := &feeder{client: d.client, in: newInput()}
	preloaded, err := d.preload(ctx, feed, follower)
	if err != nil {
		return err
	}
	stop := feed.steady(ctx)
	defer stop()
	before, err := d.settled(ctx)
	if err != nil {
		return err
	}
	victim, err := d.chooseVictim(before)
	if err != nil {
		return err
	}
	d.say("waiting for %s to write the preloaded state to its disk", victim.clientID)
	if err := victim.awaitFlush(ctx, stateful(before, victim), preloaded); err != nil {
		return err
	}
	if before, err = d.settled(ctx); err != nil {
		return err
	}
	uncommitted, err := d.kill(ctx, victim, before)
	if err != nil {
		return err
	}
	after, err := d.restart(ctx, victim, before)
	if err != nil {
		return err
	}
	if err := d.compareGroups(before, after); err != nil {
		return err
	}
	restored, err := victim.rest.Metric(ctx, "millrace_restored_records_total")
	if err != nil {
		return err
	}
	fed, err := stop()
	if err != nil {
		return err
	}
	want := replay(fed)
	if err := follower.AwaitAll(ctx, want); err != nil { // by word: what is counted twice must not stand for what is not counted yet
		return err
	}
	d.say("the feed has ended: %d lines, %d words, all counted", fed, fed*lineWords)
	d.say("stopping the word count gracefully, so that nothing is left open")
	for _, w := range d.workers {
		if err := w.Stop(15 * time.Second); err != nil {
			return err
		}
	}
	content, err := check.Read(ctx, counts, kgo.SeedBrokers(d.broker))
	if err != nil {
		return err
	}
	if err := d.compareRestored(restored, content, victim, before); err != nil {
		return err
	}
	if err := d.compareCounts(content, want, uncommitted); err != nil {
		return err
	}
	return d.cluster.Stop(15 * time.Second)
}

func (d *demo) isolation() kgo.Opt {
	if d.eos {
		return kgo.FetchIsolationLevel(kgo.ReadCommitted())
	}
	return kgo.FetchIsolationLevel(kgo.ReadUncommitted())
}

// open starts the cluster and both workers.
func (d *demo) open(ctx context.Context) error {
	guarantee := "at-least-once"
	if d.eos {
		guarantee = "exactly-once"
	}
	if err := d.startCluster(ctx); err != nil {
		return err
	}
	d.say("embedded cluster (millrace dev, process %d) at %s", d.cluster.PID(), d.broker)
	for _, id := range []string{"wc-0", "wc-1"} {
		if err := d.addWorker(id); err != nil {
			return err
		}
	}
	for _, w := range d.workers {
		if err := d.start(w, d.eos); err != nil {
			return err
		}
		d.say("word count %s (process %d), %d threads, %s, REST http://%s", w.clientID, w.PID(), threads, guarantee, w.rest)
	}
	for _, w := range d.workers {
		if err := w.awaitReady(ctx); err != nil {
			return err
		}
	}
	g, err := d.settled(ctx)
	if err != nil {
		return err
	}
	d.say("the group is complete: generation %d, members %s", g.Generation, strings.Join(g.IDs(), ", "))
	return nil
}

// preload makes the state: many different words, all counted.
func (d *demo) preload(ctx context.Context, feed *feeder, follower *check.Follower) (time.Time, error) {
	feed.produce(ctx, preloadLines)
	if err := feed.flush(ctx); err != nil {
		return time.Time{}, err
	}
	if err := follower.Await(ctx, preloadLines*lineWords); err != nil {
		return time.Time{}, err
	}
	d.say("preloaded: %d words counted", follower.Sum())
	return time.Now(), nil
}

// settled waits until the group is complete and has not changed for a second.
func (d *demo) settled(ctx context.Context) (proc.Group, error) {
	var last proc.Group
	since := time.Now()
	err := d.cluster.Await(ctx, "complete and settled group", func() (bool, error) {
		g, err := d.ask(ctx)
		if err != nil || !g.Complete(threads*len(d.workers), 2*partitions) || !g.Equal(last) {
			last, since = g, time.Now()
			return false, err
		}
		return time.Since(since) >= time.Second, nil
	})
	return last, err
}

// chooseVictim takes the last worker that keeps state.
func (d *demo) chooseVictim(g proc.Group) (*worker, error) {
	for _, w := range slices.Backward(d.workers) {
		if len(stateful(g, w)) > 0 {
			return w, nil
		}
	}
	return nil, errors.New("no worker keeps counts")
}

// kill ends the victim with SIGKILL and returns how many words were uncommitted by then.
func (d *demo) kill(ctx context.Context, victim *worker, g proc.Group) (uncommitted int64, err error) {
	d.say("SIGKILL to %s (process %d) under load", victim.clientID, victim.PID())
	victim.Kill()
	committed, err := d.admin.FetchOffsets(ctx, appID)
	if err != nil {
		return 0, fmt.Errorf("committed offsets: %w", err)
	}
	ends, err := d.admin.ListEndOffsets(ctx, lines, repartition)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("ends of the input: %w", err)
	}
	for id, tasks := range g.Tasks {
		for _, task := range tasks {
			if !strings.HasPrefix(id, victim.clientID+"-") {
				continue
			}
			uncommitted += uncommittedOf(task, committed, ends)
		}
	}
	d.say("at the kill %d words were not committed", uncommitted)
	return uncommitted, nil
}

const repartition = appID + "-word-counts-repartition"

// uncommittedOf is how many words a task may process again.
func uncommittedOf(task string, committed kadm.OffsetResponses, ends kadm.ListedOffsets) int64 {
	topic, words, p := lines, int64(lineWords), 0
	if scanTask(task, &p) {
		topic, words = repartition, 1
	} else if _, err := fmt.Sscanf(task[strings.LastIndexByte(task, '_')+1:], "%d", &p); err != nil {
		return 0
	}
	end, _ := ends.Lookup(topic, int32(p))
	at, _ := committed.Lookup(topic, int32(p))
	return max(0, end.Offset-max(0, at.At)) * words
}

// restart starts the victim again and waits until it has its tasks.
func (d *demo) restart(ctx context.Context, victim *worker, before proc.Group) (proc.Group, error) {
	began := time.Now()
	if err := d.start(victim, d.eos); err != nil {
		return proc.Group{}, err
	}
	if err := victim.awaitReady(ctx); err != nil {
		return proc.Group{}, err
	}
	d.say("%s is back (process %d) and in RUNNING after %.1f s; the session timeout is %s", victim.clientID, victim.PID(), time.Since(began).Seconds(), sessionTime)
	return d.settled(ctx)
}

func (d *demo) compareGroups(before, after proc.Group) error {
	d.say("generation before %d, after %d", before.Generation, after.Generation)
	for _, id := range before.IDs() {
		d.say("  %s: %v, after %v", id, before.Tasks[id], after.Tasks[id])
	}
	if !before.Equal(after) {
		return errors.New("generation or tasks have changed: there was a rebalance")
	}
	return nil
}

// compareRestored holds what the victim restored against the state it keeps: the words in its partitions.
func (d *demo) compareRestored(restored float64, content check.Topic, victim *worker, g proc.Group) error {
	state := 0
	for _, p := range stateful(g, victim) {
		last, err := check.LastCounts(content[p : p+1])
		if err != nil {
			return err
		}
		state += len(last)
	}
	d.say("%s restored %.0f records of its changelogs; its state has %d (%.1f %%)", victim.clientID, restored, state, 100*restored/float64(state))
	if restored == 0 || restored >= 0.1*float64(state) {
		return errors.New("that is not just the end of the changelogs")
	}
	return nil
}

// compareCounts holds the final counts against a replay of the input.
func (d *demo) compareCounts(content check.Topic, want map[string]uint64, uncommitted int64) error {
	got, err := check.LastCounts(content)
	if err != nil {
		return err
	}
	if d.eos {
		if err := check.Tables("the final counts", got, want); err != nil {
			return err
		}
		d.say("exactly-once: the counts of %d words equal the single-threaded replay", len(want))
		return nil
	}
	surplus, err := surplusOf(got, want)
	if err != nil {
		return err
	}
	d.say("at-least-once: every count of %d words is at least the replay's, %d too many in all, at most %d may be", len(want), surplus, uncommitted)
	if surplus > uncommitted {
		return errors.New("more was counted twice than was uncommitted at the kill")
	}
	return nil
}

// surplusOf is by how much the counts exceed the replay; one below it, or a strange word, is an error.
func surplusOf(got, want map[string]uint64) (int64, error) {
	surplus := int64(0)
	for word, n := range want {
		if got[word] < n {
			return 0, fmt.Errorf("%q was counted %d times, the replay has %d", word, got[word], n)
		}
		surplus += int64(got[word] - n)
	}
	for word := range got {
		if want[word] == 0 {
			return 0, fmt.Errorf("%q was counted, but is not in the input", word)
		}
	}
	return surplus, nil
}
