package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/check"
	"github.com/millrace-io/millrace/integration/proc"
)

const (
	// aimTimeout is how long a worker may take to reach the point that it is to die at; then the kill has missed
	// and is planned again.
	aimTimeout = 15 * time.Second
	// countTimeout bounds the time from a restart until everything is counted: a few seconds on a quiet machine.
	countTimeout = 90 * time.Second
	// misses is how many kills may miss, as a share of all.
	misses = 0.5
)

// run is a whole run of the parent.
type run struct {
	seed  uint64
	n     int
	every int
	rng   *rand.Rand
	began time.Time

	dir, self string
	broker    string
	rest      proc.REST
	cluster   *proc.Process
	worker    *proc.Process
	points    *trace
	client    *kgo.Client
	feed      *feed
	follower  *check.Follower
	hits      map[string]int
}

func newRun(seed uint64, n, every int) *run {
	return &run{seed: seed, n: n, every: every, rng: rand.New(rand.NewPCG(seed, 1)), began: time.Now(), hits: map[string]int{}}
}

func (r *run) say(format string, args ...any) {
	fmt.Printf("%6.1f s  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

func (r *run) run(ctx context.Context) (err error) {
	if r.dir, err = os.MkdirTemp("", "millrace-chaos-"); err != nil {
		return err
	}
	defer func() {
		r.close()
		if err == nil {
			os.RemoveAll(r.dir)
		} else {
			r.say("logs and data are in %s", r.dir)
		}
	}()
	if err := r.open(ctx); err != nil {
		return err
	}
	r.say("seed %d: %d kills", r.seed, r.n)
	r.feed.resume(ctx)
	if err := r.killAll(ctx); err != nil {
		return err
	}
	if err := r.finish(ctx); err != nil {
		return err
	}
	return r.report()
}

// open starts the cluster and what watches it.
func (r *run) open(ctx context.Context) error {
	millrace, err := proc.Build(ctx, r.dir, "cmd/millrace")
	if err != nil {
		return err
	}
	if r.self, err = os.Executable(); err != nil {
		return err
	}
	if r.broker, err = proc.FreeAddr(); err != nil {
		return err
	}
	rest, err := proc.FreeAddr()
	if err != nil {
		return err
	}
	r.rest = proc.REST(rest)
	r.cluster, err = proc.Start(r.dir, "millrace-dev", millrace, nil, "dev", "-listen", r.broker, "-data-dir", filepath.Join(r.dir, "cluster"),
		"-topic", fmt.Sprintf("%s:%d", lines, partitions), "-topic", fmt.Sprintf("%s:%d", counts, partitions))
	if err != nil {
		return err
	}
	if err := r.cluster.AwaitLog(ctx, "bootstrap.servers="); err != nil {
		return err
	}
	r.client, err = kgo.NewClient(kgo.SeedBrokers(r.broker), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	r.feed = newFeed(r.client, r.seed)
	r.follower, err = check.Follow(counts, kgo.SeedBrokers(r.broker), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	return err
}

func (r *run) close() {
	if r.feed != nil {
		r.feed.stop()
	}
	if r.worker != nil {
		r.worker.Kill()
	}
	if r.follower != nil {
		r.follower.Close()
	}
	if r.client != nil {
		r.client.Close()
	}
	if r.cluster != nil {
		r.cluster.Kill()
	}
}

// killAll goes through the plan. A kill that misses is appended again.
func (r *run) killAll(ctx context.Context) error {
	kills := plan(r.rng, r.n)
	missed := 0
	for done := 0; len(kills) > 0; {
		k := kills[0]
		kills = kills[1:]
		ok, err := r.kill(ctx, k)
		if err != nil {
			return err
		}
		if !ok {
			if missed++; float64(missed) > max(3, misses*float64(r.n)) {
				return fmt.Errorf("%d kills have missed: the worker does not reach %s", missed, k.point)
			}
			kills = append(kills, k)
			continue
		}
		if done++; done%r.every == 0 && len(kills) > 0 {
			if err := r.checkpoint(ctx, fmt.Sprintf("after %d kills", done)); err != nil {
				return err
			}
		}
	}
	return nil
}

// kill starts a worker and lets it die as planned; false says that it was killed otherwise, because it did not come
// to the planned point.
func (r *run) kill(ctx context.Context, k kill) (bool, error) {
	if err := r.start(k); err != nil {
		return false, err
	}
	hit := true
	switch k.point {
	case "":
		select {
		case <-time.After(k.delay):
			r.worker.Kill()
		case <-r.worker.Ended():
		}
	case "flush":
		// it dies while it stops, or before, when a rebalance takes a task away
		if err := r.ready(ctx); err != nil && !r.worker.Killed() {
			return false, err
		}
		hit = r.worker.Stop(aimTimeout) != nil
	default:
		select {
		case <-r.worker.Ended():
		case <-time.After(aimTimeout):
			r.worker.Kill()
			hit = false
		}
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if hit && !r.worker.Killed() {
		return false, fmt.Errorf("the worker was not killed, but ended with %v; the end of its log:\n%s", r.worker.Err(), r.worker.Tail(20))
	}
	class := r.points.class()
	if !hit {
		class = elsewhere
		r.say("missed: %s", k)
	}
	r.hits[class]++
	r.worker = nil
	return hit, nil
}

// start runs a worker that will die as planned; the zero kill lets it live.
func (r *run) start(k kill) error {
	dir := filepath.Join(r.dir, "worker")
	if k.wipe {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	args := []string{workerVerb, "-brokers", r.broker, "-dir", dir, "-rest", string(r.rest)}
	if k.point != "" {
		args = append(args, "-point", k.point, "-nth", fmt.Sprint(k.nth), "-delay", k.delay.String())
	}
	r.worker, err = proc.Start(r.dir, "worker", r.self, []*os.File{write}, args...)
	write.Close()
	if err != nil {
		read.Close()
		return err
	}
	r.points = watchPoints(read)
	return nil
}

func (r *run) ready(ctx context.Context) error {
	return r.worker.Await(ctx, "state RUNNING", func() (bool, error) { return r.rest.Ready(ctx) })
}

// checkpoint lets a worker count everything and compares.
func (r *run) checkpoint(ctx context.Context, when string) error {
	fed, err := r.feed.pause(ctx)
	if err != nil {
		return err
	}
	if err := r.start(kill{}); err != nil {
		return err
	}
	if err := r.verify(ctx, fed); err != nil {
		return fmt.Errorf("%s: %w", when, err)
	}
	r.say("%s: %d words, all equal to the replay", when, fed*lineWords)
	r.feed.resume(ctx)
	r.worker.Kill() // not one of those that count
	r.worker = nil
	return nil
}

// finish compares after the last kill, after a graceful restart, and after a restore of everything.
func (r *run) finish(ctx context.Context) error {
	fed, err := r.feed.pause(ctx)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		when string
		kill kill
	}{{"after the last kill", kill{}}, {"after a graceful restart", kill{}}, {"after a restore of all state", kill{wipe: true}}} {
		if err := r.start(step.kill); err != nil {
			return err
		}
		if err := r.verify(ctx, fed); err != nil {
			return fmt.Errorf("%s: %w", step.when, err)
		}
		r.say("%s: %d words, all equal to the replay", step.when, fed*lineWords)
		if err := r.worker.Stop(30 * time.Second); err != nil {
			return err
		}
		r.worker = nil
	}
	return nil
}

// report says what was hit, and whether that is enough.
func (r *run) report() error {
	classes := make([]string, 0, len(r.hits))
	for class := range r.hits {
		classes = append(classes, class)
	}
	slices.Sort(classes)
	for _, class := range classes {
		r.say("%4d kills: %s", r.hits[class], class)
	}
	var err error
	if r.n >= 100 {
		for _, class := range []string{inTransaction, inRestore, inFlush} {
			if r.hits[class] < 10 {
				err = errors.Join(err, fmt.Errorf("only %d kills hit: %s", r.hits[class], class))
			}
		}
	}
	return err
}
