package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// aimTimeout is how long a process may take to reach the point that it is to die at; then the kill has missed
	// and is planned again.
	aimTimeout = 15 * time.Second
	// countTimeout bounds the time from a restart until everything is counted: a few seconds on a quiet machine.
	countTimeout = 90 * time.Second
	// stateTimeout bounds the time until a query sees what was counted.
	stateTimeout = 10 * time.Second
	// misses is how many kills may miss, as a share of all.
	misses = 0.5
)

// workerRun kills the word count.
type workerRun struct {
	*stage
	n     int
	every int
	rng   *rand.Rand
	hits  map[string]int
}

func (r *workerRun) worker() *worker { return r.workers[0] }

func (r *workerRun) play(ctx context.Context) error {
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

// killAll goes through the plan. A kill that misses is appended again.
func (r *workerRun) killAll(ctx context.Context) error {
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
func (r *workerRun) kill(ctx context.Context, k kill) (bool, error) {
	w := r.worker()
	if err := r.startWorker(w, k); err != nil {
		return false, err
	}
	hit := true
	switch k.point {
	case "":
		select {
		case <-time.After(k.delay):
			w.Kill()
		case <-w.Ended():
		}
	case "flush":
		// it dies while it stops, or before, when a rebalance takes a task away
		if err := r.ready(ctx); err != nil && !w.Killed() {
			return false, err
		}
		hit = w.Stop(aimTimeout) != nil
	default:
		select {
		case <-w.Ended():
		case <-time.After(aimTimeout):
			w.Kill()
			hit = false
		}
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if hit && !w.Killed() {
		return false, fmt.Errorf("the worker was not killed, but ended with %v; the end of its log:\n%s", w.Err(), w.Tail(20))
	}
	class := w.points.class()
	if !hit {
		class = elsewhere
		r.say("missed: %s", k)
	}
	r.hits[class]++
	return hit, nil
}

// checkpoint lets a worker count everything and compares.
func (r *workerRun) checkpoint(ctx context.Context, when string) error {
	fed, err := r.feed.pause(ctx)
	if err != nil {
		return err
	}
	if err := r.startWorker(r.worker(), kill{}); err != nil {
		return err
	}
	if err := r.verify(ctx, fed); err != nil {
		return fmt.Errorf("%s: %w", when, err)
	}
	r.say("%s: %d words, all equal to the replay", when, fed*lineWords)
	r.feed.resume(ctx)
	r.worker().Kill() // not one of those that count
	return nil
}

// finish compares after the last kill, after a graceful restart, and after a restore of everything.
func (r *workerRun) finish(ctx context.Context) error {
	fed, err := r.feed.pause(ctx)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		when string
		kill kill
	}{{"after the last kill", kill{}}, {"after a graceful restart", kill{}}, {"after a restore of all state", kill{wipe: true}}} {
		if err := r.startWorker(r.worker(), step.kill); err != nil {
			return err
		}
		if err := r.verify(ctx, fed); err != nil {
			return fmt.Errorf("%s: %w", step.when, err)
		}
		r.say("%s: %d words, all equal to the replay", step.when, fed*lineWords)
		if err := r.worker().Stop(30 * time.Second); err != nil {
			return err
		}
	}
	return nil
}

// report says what was hit, and whether that is enough.
func (r *workerRun) report() error {
	r.tell(r.hits)
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

// tell prints how many kills hit what.
func (s *stage) tell(hits map[string]int) {
	classes := make([]string, 0, len(hits))
	for class := range hits {
		classes = append(classes, class)
	}
	slices.Sort(classes)
	for _, class := range classes {
		s.say("%4d kills: %s", hits[class], class)
	}
}
