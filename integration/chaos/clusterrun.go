package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-io/millrace/integration/proc"
)

// clusterRun kills the cluster under word counts that go on.
type clusterRun struct {
	*stage
	kills []kill
	every int
	hits  map[string]int
	group proc.Group // as it was before the first kill
}

func (r *clusterRun) play(ctx context.Context) error {
	r.say("seed %d: %d kills", r.seed, len(r.kills))
	n := len(r.kills)
	for _, w := range r.workers {
		if err := r.startWorker(w, kill{}); err != nil {
			return err
		}
	}
	if err := r.ready(ctx); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	r.feed.resume(ctx)
	r.cluster.Kill() // from now on each start has its own plan
	if err := r.killAll(ctx); err != nil {
		return err
	}
	if err := r.finish(ctx); err != nil {
		return err
	}
	return r.report(n)
}

// settle waits until each task has a thread and notes which.
func (r *clusterRun) settle(ctx context.Context) error {
	return r.workers[0].Await(ctx, "settled group", func() (bool, error) {
		g, err := r.askGroup(ctx)
		same := err == nil && g.Complete(len(r.workers)*threads, 2*partitions) && g.Equal(r.group)
		r.group = g
		return same, err
	})
}

func (r *clusterRun) askGroup(ctx context.Context) (proc.Group, error) {
	var rests []proc.REST
	for _, w := range r.workers {
		rests = append(rests, w.rest)
	}
	return proc.AskGroup(ctx, rests...)
}

// killAll goes through the plan. A kill that misses is appended again.
func (r *clusterRun) killAll(ctx context.Context) error {
	allowed := max(3, misses*float64(len(r.kills)))
	for done := 0; len(r.kills) > 0; {
		k := r.kills[0]
		r.kills = r.kills[1:]
		ok, err := r.kill(ctx, k)
		if err != nil {
			return fmt.Errorf("%v: %w", k, err)
		}
		if !ok {
			r.say("missed: %v", k)
			if allowed--; allowed < 0 {
				return fmt.Errorf("too many kills have missed, the last one %v", k)
			}
			r.kills = append(r.kills, k)
			continue
		}
		if done++; done%r.every == 0 && len(r.kills) > 0 {
			if err := r.checkpoint(ctx, fmt.Sprintf("after %d kills", done)); err != nil {
				return err
			}
			r.feed.resume(ctx)
			r.cluster.Kill() // not one of those that count
		}
	}
	return nil
}

// kill starts the cluster and lets it die as planned; false says that it was killed otherwise, because it did not come to the
// planned point.
func (r *clusterRun) kill(ctx context.Context, k kill) (hit bool, err error) {
	if err := r.startCluster(k); err != nil {
		return false, err
	}
	hit, err = r.awaitDeath(ctx, k)
	if err != nil {
		return false, err
	}
	if inStart(k.point) && hit {
		r.hits[inRecovery]++
	}
	if cut, ok := r.cluster.points.start(); ok {
		r.hits[cut]++ // by the death before this start
	}
	if k.torn {
		if err := tear(r.clusterDir()); err != nil {
			return false, err
		}
	}
	select {
	case <-time.After(k.away):
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return hit, r.alive()
}

// awaitDeath waits until the cluster has died, by the plan or, if it does not get there, by us.
func (r *clusterRun) awaitDeath(ctx context.Context, k kill) (hit bool, err error) {
	timeout := time.NewTimer(aimTimeout)
	defer timeout.Stop()
	serving := r.cluster.points.serving
	for {
		select {
		case <-r.cluster.Ended():
			if !r.cluster.Killed() {
				return false, fmt.Errorf("the cluster was not killed, but ended with %v; the end of its log:\n%s", r.cluster.Err(), r.cluster.Tail(20))
			}
			<-r.cluster.points.done
			return hit || k.point != "", nil
		case <-serving:
			serving = nil
			switch {
			case k.point == "":
				hit = true
				timeout.Reset(k.delay)
			case inStart(k.point): // there was nothing to recover
				timeout.Reset(0)
			}
		case <-timeout.C:
			if serving != nil && k.point == "" {
				return false, fmt.Errorf("the cluster does not serve after %v; the end of its log:\n%s", aimTimeout, r.cluster.Tail(20))
			}
			if k.point != "" {
				r.cluster.Kill()
				<-r.cluster.points.done
				return false, ctx.Err()
			}
			r.cluster.Kill()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// alive says whether all word counts go on.
func (r *clusterRun) alive() error {
	for _, w := range r.workers {
		select {
		case <-w.Ended():
			return fmt.Errorf("%s ended by itself (%v); the end of its log:\n%s", w.name, w.Err(), w.Tail(20))
		default:
		}
	}
	return nil
}

// checkpoint lets everything be counted and compares.
func (r *clusterRun) checkpoint(ctx context.Context, when string) error {
	if err := r.startCluster(kill{}); err != nil {
		return err
	}
	fed, err := r.feed.pause(ctx)
	if err != nil {
		return err
	}
	if err := r.compare(ctx, fed); err != nil {
		return fmt.Errorf("%s: %w", when, err)
	}
	r.say("%s: %d words, %s", when, fed*lineWords, r.asWanted())
	return nil
}

// asWanted says what a comparison has found.
func (r *clusterRun) asWanted() string {
	if r.exact {
		return "all equal to the replay"
	}
	return "none missing"
}

// compare is verify, and that nobody has noticed anything.
func (r *clusterRun) compare(ctx context.Context, fed uint64) error {
	if err := r.verify(ctx, fed); err != nil {
		return err
	}
	g, err := r.askGroup(ctx)
	if err != nil {
		return err
	}
	if !g.Equal(r.group) {
		return fmt.Errorf("the group is no longer as it was: %+v, it was %+v", g, r.group)
	}
	return r.alive()
}

// finish compares after the last kill, and again when all state was restored.
func (r *clusterRun) finish(ctx context.Context) error {
	if err := r.checkpoint(ctx, "after the last kill"); err != nil {
		return err
	}
	fed := r.feed.next
	for _, w := range r.workers {
		if err := w.Stop(30 * time.Second); err != nil {
			return err
		}
		if err := r.startWorker(w, kill{wipe: true}); err != nil {
			return err
		}
	}
	if err := r.verify(ctx, fed); err != nil {
		return fmt.Errorf("after a restore of all state: %w", err)
	}
	r.say("after a restore of all state: %d words, %s", fed*lineWords, r.asWanted())
	return nil
}

// report says what was hit, and whether that is enough.
func (r *clusterRun) report(n int) error {
	r.tell(r.hits)
	var err error
	if n >= 100 && r.exact {
		for _, class := range []string{inMarkers, inRecovery, inTransaction} {
			if r.hits[class] < 10 {
				err = errors.Join(err, fmt.Errorf("only %d kills hit: %s", r.hits[class], class))
			}
		}
	}
	return err
}
