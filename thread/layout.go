package thread

import (
	"errors"
	"time"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/membership/assign"
)

// A Layout is what there is to run: the topology with all partition counts known, and its tasks for the group's leader. It is
// immutable; when source topics grow the owner makes another one.
type Layout struct {
	*topology.Layout
	Assignable []assign.Task
	// Began are the partition counts of the source topics when the process started. What lies beyond has come while it ran,
	// and is read from its beginning whatever the reset rule: its first records are older than the look that found it.
	Began map[string]int32
}

// isNew tells whether a partition has come while the process ran.
func (l *Layout) isNew(p partition) bool {
	n, ok := l.Began[p.topic]
	return ok && p.index >= n
}

// LayoutChanged makes the thread look at [Config.Layout] again. Any goroutine may call it; it returns at once.
func (t *Thread) LayoutChanged() {
	select {
	case t.relaid <- struct{}{}:
	default: // it has not looked since the last time
	}
}

// adoptLayout takes up a layout with more partitions. Tasks of which a source has grown are opened anew, and the membership is
// told: the leader, and nobody else, joins the group again to give the new tasks to somebody.
func (t *Thread) adoptLayout() error {
	t.now = time.Now()
	t.group.InputsChanged()
	return t.reopenGrown()
}

// reopenGrown opens tasks anew that read a partition more than when they were opened: a topic that is merged with a wider one
// has grown. Everything else about a task follows from its topology.
func (t *Thread) reopenGrown() error {
	var grown []taskid.ID
	for _, o := range t.tasks {
		if len(t.cfg.inputsOf(o.id)) != len(o.inputs) {
			grown = append(grown, o.id)
		}
	}
	if len(grown) == 0 {
		return nil
	}
	t.log.Info("tasks read more partitions than before and are opened anew", "thread", t.name, "tasks", grown)
	t.lifecycle.become(PartitionsRevoked)
	if err := t.giveBack(grown); err != nil {
		return err
	}
	for _, id := range grown {
		if err := t.openTask(id); err != nil {
			return err
		}
	}
	t.lifecycle.become(PartitionsAssigned)
	t.settle()
	return nil
}

// giveBack commits and closes tasks. What cannot be committed is processed again by the next owner. After errMigrated the
// thread has no tasks at all.
func (t *Thread) giveBack(ids []taskid.ID) error {
	err := t.commitWithin(t.cfg.RebalanceTimeout / 2)
	if err != nil && !errors.Is(err, errPutOff) && !errors.Is(err, errAborted) {
		return err
	}
	if err != nil {
		t.log.Warn("tasks could not be committed before they are closed, their input is processed again", "thread", t.name, "err", err)
	}
	return t.release(among(ids))
}
