package thread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/thread/task"
)

// assigned takes the thread's complete assignment: what is new is opened by the restore plane, what stays goes on.
func (t *Thread) assigned(ev membership.Assigned) error {
	t.log.Info("assigned", "thread", t.name, "generation", ev.Generation, "tasks", ev.Active)
	t.generation = ev.Generation
	// Tasks come away by Revoked or Lost first. Should one be missing all the same, it may be somebody else's by now.
	if err := t.dropMissing(ev.Active); err != nil {
		return err
	}
	for _, id := range ev.Active {
		if t.find(id) == nil && t.opening[id] == nil {
			if err := t.openTask(id); err != nil {
				return err
			}
		}
	}
	t.lifecycle.become(PartitionsAssigned)
	t.settle()
	return nil
}

// settle makes the thread RUNNING when nothing is being opened, and publishes what it has.
func (t *Thread) settle() {
	if t.lifecycle.state == PartitionsAssigned && len(t.opening) == 0 {
		t.lifecycle.become(Running)
	}
	t.publish()
}

func (t *Thread) find(id taskid.ID) *owned {
	i := slices.IndexFunc(t.tasks, func(o *owned) bool { return o.id == id })
	if i < 0 {
		return nil
	}
	return t.tasks[i]
}

func (t *Thread) openTask(id taskid.ID) error {
	sub, ok := t.cfg.Plan.Sub(id.Subtopology)
	if !ok {
		return fmt.Errorf("task %v was assigned, but this process' topology has no sub-topology %q: "+
			"do all processes of %s run the same version?", id, id.Subtopology, t.cfg.AppID)
	}
	o := &opening{id: id, sub: sub}
	t.opening[id] = o
	t.restorer.open(t.ctx, t.cfg, t.group, o, t.opened)
	return nil
}

// install takes an opened task over from the restore plane.
func (t *Thread) install(o *opening) error {
	t.now = time.Now()
	if t.opening[o.id] != o { // taken away meanwhile
		t.discard(o)
		return nil
	}
	delete(t.opening, o.id)
	if o.err != nil {
		return o.err
	}
	built, err := t.build(o)
	if err != nil {
		t.discard(o)
		return err
	}
	t.tasks = append(t.tasks, built)
	slices.SortFunc(t.tasks, func(a, b *owned) int { return a.id.Compare(b.id) })
	if err := t.changeRoutes(func() { t.addRoutes(built) }); err != nil {
		return err
	}
	t.settle()
	return t.reopenGrown() // the layout may have changed while it was opened
}

// discard closes an opened task that nobody wants any more.
func (t *Thread) discard(o *opening) {
	if o.err == nil {
		t.closeStates([]*owned{{id: o.id, state: o.state}})
	}
}

// build makes the task that runs on the opened state.
func (t *Thread) build(o *opening) (*owned, error) {
	built := &owned{id: o.id, state: o.state, topics: slices.Clone(o.sub.Sinks)}
	for _, s := range o.sub.Stores {
		built.topics = append(built.topics, s.Changelog)
		built.changelogs = append(built.changelogs, s.Changelog)
		built.stores = append(built.stores, s.Name)
	}
	var err error
	built.task, err = task.New(task.Config{
		ID: o.id, Sub: o.sub, State: taskState(o.state), Stats: &built.stats,
		OnDecodeError: t.cfg.OnDecodeError, OnProcessError: t.cfg.OnProcessError,
	})
	if err != nil {
		return nil, fmt.Errorf("building task %v: %w", o.id, err)
	}
	committed := map[string]task.Committed{}
	for p, at := range o.committed {
		committed[p.topic] = task.Committed{Next: at.At, LeaderEpoch: at.LeaderEpoch, Metadata: at.Metadata}
	}
	built.task.Resume(committed)
	for p, start := range o.starts {
		index, ok := built.task.Input(p.topic)
		if !ok {
			return nil, fmt.Errorf("task %v has no input %s", o.id, p.topic)
		}
		// Where nothing was committed the position is known only now: the next commit fixes it.
		built.task.SeenAt(index, start)
		built.inputs = append(built.inputs, input{partition: p, index: index, start: start})
	}
	return built, nil
}

// taskState keeps a nil state a nil interface.
func taskState(s *statestore.State) task.State {
	if s == nil {
		return nil
	}
	return s
}

// revoked gives tasks back: they are committed and closed before the group is told that they may go elsewhere.
func (t *Thread) revoked(ev membership.Revoked) error {
	t.log.Info("revoked", "thread", t.name, "tasks", ev.Tasks)
	t.lifecycle.become(PartitionsRevoked)
	t.publish()
	if err := t.giveBack(ev.Tasks); err != nil && !errors.Is(err, errMigrated) {
		return err
	}
	t.group.RevokeDone()
	return nil
}

// commitWithin commits, again and again while the group puts the commit off, for so long.
func (t *Thread) commitWithin(limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		err := t.commit()
		if !errors.Is(err, errPutOff) || time.Now().After(deadline) {
			return err
		}
		if err := pause(t.ctx, commitRetry); err != nil {
			return err
		}
	}
}

// among tells whether a task is one of the given ones.
func among(ids []taskid.ID) func(taskid.ID) bool {
	return func(id taskid.ID) bool { return slices.Contains(ids, id) }
}

// lost drops everything without a commit: the group no longer counts this thread as a member.
func (t *Thread) lost(reason string) error {
	t.log.Warn("assignment lost, it is given up without a commit", "thread", t.name, "reason", reason)
	t.stats.Lost.Add(1)
	if t.lifecycle.state == Created || t.lifecycle.state == Starting {
		return nil
	}
	t.lifecycle.become(PartitionsRevoked)
	return t.release(func(taskid.ID) bool { return true })
}

// errMigrated unwinds a commit after the group turned it down and everything was dropped.
var errMigrated = errors.New("the group gave the tasks to other members")

// migrated handles a commit that the group turned down because this thread is no longer the member it was.
func (t *Thread) migrated(cause error) error {
	if err := t.lost(cause.Error()); err != nil {
		return err
	}
	return errMigrated
}

// recovered tells that an error only unwinds what has already been put right.
func recovered(err error) bool {
	return errors.Is(err, errAborted) || errors.Is(err, errMigrated)
}

// dropMissing closes tasks that are not in the assignment.
func (t *Thread) dropMissing(active []taskid.ID) error {
	missing := func(id taskid.ID) bool { return !slices.Contains(active, id) }
	for _, o := range t.tasks {
		if missing(o.id) {
			t.log.Warn("task is missing from the assignment without having been revoked", "thread", t.name, "task", o.id)
			return t.release(missing)
		}
	}
	for id := range t.opening {
		if missing(id) {
			return t.release(missing)
		}
	}
	return nil
}

// release closes tasks, and those that are being opened. What they have not committed is dropped; under exactly-once that is
// part of the open transaction, which is then aborted as a whole.
func (t *Thread) release(which func(taskid.ID) bool) error {
	t.cancelOpenings(which)
	var gone []*owned
	dirty := false
	for _, o := range t.tasks {
		if which(o.id) {
			gone = append(gone, o)
			dirty = dirty || o.task.CommitNeeded()
		}
	}
	if len(gone) > 0 {
		err := t.changeRoutes(func() {
			for _, o := range gone {
				t.removeRoutes(o)
			}
			t.tasks = slices.DeleteFunc(t.tasks, func(o *owned) bool { return which(o.id) })
		})
		if err != nil {
			return err
		}
	}
	t.publish() // before the state closes: queries must not find it any more
	t.closeStates(gone)
	if dirty && t.txn.open {
		if err := t.abort(errors.New("tasks were taken away in the middle of a transaction")); !errors.Is(err, errAborted) {
			return err
		}
	}
	return nil
}

// cancelOpenings ends the opening of tasks and waits until their state is closed.
func (t *Thread) cancelOpenings(which func(taskid.ID) bool) {
	waiting := 0
	for id, o := range t.opening {
		if which(id) {
			o.cancel()
			waiting++
		}
	}
	for waiting > 0 {
		o := <-t.opened
		if !which(o.id) {
			t.late = append(t.late, o)
			continue
		}
		waiting--
		delete(t.opening, o.id)
		t.discard(o)
	}
}

// closeStates closes the states of tasks side by side, as each may have to flush to disk. A flush that fails loses nothing:
// the next owner restores from the changelog.
func (t *Thread) closeStates(gone []*owned) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.cfg.CloseTimeout)
	defer cancel()
	var closing sync.WaitGroup
	for _, o := range gone {
		t.points.reach(AtFlush)
		closing.Go(func() {
			if err := closeState(ctx, o.state); err != nil {
				t.stats.CloseErrors.Add(1)
				t.log.Error("closing the state of a task", "thread", t.name, "task", o.id, "err", err)
			}
			t.restorer.owners.release(o.id)
		})
	}
	closing.Wait()
}

func closeState(ctx context.Context, s *statestore.State) error {
	if s == nil {
		return nil
	}
	s.Abort()
	return s.Close(ctx)
}
