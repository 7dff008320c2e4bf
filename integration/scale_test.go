package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/proc"
	"github.com/millrace-io/millrace/metadata"
	"github.com/millrace-io/millrace/streams"
)

// scaled is a job that has grown from two processes to four and lost the last two: they were stopped and have not left the group.
type scaled struct {
	job
	in      *input
	ctx     context.Context
	client  *kgo.Client
	stay    []*worker
	surplus []string // instance ids of the stopped processes, as they told over REST
	before  proc.Group
}

func scaleOutAndIn(t *testing.T, session time.Duration) *scaled {
	s := &scaled{job: newJob(t), in: newInput(), ctx: patient(t)}
	s.client = newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	follower := s.follow(t)
	var workers []*worker
	for i := range 4 {
		w := newWorker(t, s.job, fmt.Sprintf("wc-%d", i), streams.ExactlyOnce)
		w.cfg.Session = session
		w.start(t)
		workers = append(workers, w)
		if i == 1 {
			settled(t, s.ctx, workers...)
			s.in.feed(t, s.client, s.job, 500)
		}
	}
	s.before = settled(t, s.ctx, workers...)
	s.in.feed(t, s.client, s.job, 500)
	if err := follower.Await(s.ctx, s.in.fed()); err != nil {
		t.Fatal(err)
	}
	for _, w := range workers[2:] {
		ids, err := w.rest().InstanceIDs(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		s.surplus = append(s.surplus, ids...)
	}
	for _, w := range workers[2:] {
		if err := w.Stop(patience); err != nil {
			t.Fatal(err)
		}
	}
	s.stay = workers[:2]
	slices.Sort(s.surplus)
	want := []string{"wc-2-StreamThread-1-consumer", "wc-2-StreamThread-2-consumer", "wc-3-StreamThread-1-consumer", "wc-3-StreamThread-2-consumer"}
	if !slices.Equal(s.surplus, want) {
		t.Fatalf("the processes told the instance ids %v", s.surplus)
	}
	return s
}

// finish holds everything against the replay: the tasks of the stopped processes have moved, and nothing is lost or counted twice.
// It returns how many generations have passed since before the stop.
func (s *scaled) finish(t *testing.T) int32 {
	t.Helper()
	after := settled(t, s.ctx, s.stay...)
	for id := range after.Tasks {
		if strings.HasPrefix(id, "wc-2") || strings.HasPrefix(id, "wc-3") {
			t.Errorf("%s is still there", id)
		}
	}
	follower := s.follow(t)
	s.in.feed(t, s.client, s.job, 500)
	if err := follower.Await(s.ctx, s.in.fed()); err != nil {
		t.Fatal(err)
	}
	for _, w := range s.stay {
		if err := w.Stop(patience); err != nil {
			t.Fatal(err)
		}
	}
	s.compare(t, s.in)
	return after.Generation - s.before.Generation
}

// Scale from two to four processes and back: the operator asks the surplus processes for their instance ids over REST, stops them, and
// removes all ids in one batch. Exactly one generation passes.
func TestScaleInByOneBatch(t *testing.T) {
	s := scaleOutAndIn(t, 30*time.Second)
	removals, err := metadata.RemoveInstances(s.ctx, newClient(t), s.AppID, "scaled in", s.surplus)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range removals {
		if r.Err != nil || r.Gone {
			t.Errorf("removing %s: gone=%t, %v", r.InstanceID, r.Gone, r.Err)
		}
	}
	if passed := s.finish(t); passed != 1 {
		t.Errorf("%d generations have passed, want 1", passed)
	}
	// S140: the same ids again, and one that nobody ever had, are gone already, which is no failure.
	removals, err = metadata.RemoveInstances(s.ctx, newClient(t), s.AppID, "scaled in", append(s.surplus, "absent"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range removals {
		if r.Err != nil || !r.Gone {
			t.Errorf("removing %s again: gone=%t, %v", r.InstanceID, r.Gone, r.Err)
		}
	}
}

// The same without an operator: the sessions of the stopped processes end. At most one generation passes for each member.
func TestScaleInByTimeout(t *testing.T) {
	s := scaleOutAndIn(t, 8*time.Second)
	if passed := s.finish(t); passed < 1 || int(passed) > len(s.surplus) {
		t.Errorf("%d generations have passed, want 1 to %d", passed, len(s.surplus))
	}
}
