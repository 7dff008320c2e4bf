package thread

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/classic"
	"github.com/millrace-io/millrace/statestore"
)

// A commit, for all tasks of the thread together. The order of its steps is why a crash at any point loses nothing:
//
//	C0  take no more records; nothing runs but the commit
//	C1  produce the last value of every key that changed to its changelog
//	C2  wait until every produced record is acknowledged, each one counted; a failure leads to the abort path
//	C3  a store's changelog position is one above its highest acknowledged offset, known from the acknowledgements
//	C4  commit the input positions with the group's token: as part of the transaction under exactly-once (every task that
//	    produced or changed state sends at least one position, because the group fences zombies here and only here)
//	C5  end the transaction. Here the commit is decided, inside Kafka. At-least-once has no C5: C4 decides
//	C6  apply the changed keys and the changelog positions to the local state, in one batch per task
//	C7  go on
//
// Local state therefore never holds what Kafka has not decided: it is a prefix of the changelog. Until C4 (C5) a crash means
// that the records are processed again, on the state of the last commit; after it, that the changelog replays what C6 missed.
// Under at-least-once a crash between C1 and C4 leaves values in the changelog whose input is processed again.

// commitRetry is how long a commit waits that the group put off because it rebalances.
const commitRetry = 100 * time.Millisecond

// taskCommit is what a commit under way knows of one task.
type taskCommit struct {
	active    bool
	changelog *load            // C1, owned until C6
	offsets   []classic.Offset // C4
}

// errPutOff says that the group cannot take a commit now, or did not answer. Nothing is lost: the same commit is made later, with what comes
// in the meantime.
var errPutOff = errors.New("commit put off: the group rebalances, or does not answer")

// nextCommit is when the next commit is due.
func (t *Thread) nextCommit() time.Time {
	due := t.committed.Add(t.cfg.CommitInterval)
	if due.Before(t.retryAt) {
		return t.retryAt
	}
	return due
}

// commitIfDue commits when it is time, or when too much uncommitted state is in memory.
func (t *Thread) commitIfDue() error {
	if t.now.Before(t.nextCommit()) && !t.crowded() {
		return nil
	}
	err := t.commit()
	if errors.Is(err, errPutOff) {
		t.stats.PutOff.Add(1)
		t.retryAt = t.now.Add(commitRetry)
		return nil
	}
	return err
}

// crowded tells that uncommitted state has outgrown its bound.
func (t *Thread) crowded() bool {
	if t.now.Before(t.retryAt) {
		return false
	}
	var bytes int64
	for _, o := range t.tasks {
		bytes += o.task.UncommittedBytes()
	}
	t.stats.UncommittedBytes.Store(bytes)
	return bytes > t.cfg.UncommittedMaxBytes
}

// commit runs C0 to C7. It returns errPutOff when the group cannot take it now, and nil when there was nothing to do.
func (t *Thread) commit() error {
	began := time.Now()
	t.flushDue(began)
	if !t.prepare() {
		t.committed = began
		return nil
	}
	t.points.reach(AtC0)
	if err := t.produceChangelogs(); err != nil { // C1
		return err
	}
	t.points.reach(AtC1)
	if err := t.sink.drain(); err != nil { // C2
		return t.produceFailed(err)
	}
	t.points.reach(AtC2)
	if err := t.commitOffsets(); err != nil { // C4, C5
		return err
	}
	if err := t.applyCommits(); err != nil { // C3, C6
		return err
	}
	t.points.reach(AtC6)
	t.committed = time.Now()
	t.stats.observeCommit(t.committed.Sub(began))
	return nil
}

// flushDue lets states go to disk in the background when it is time, those too whose task has nothing to commit: what a
// kill takes back is bounded by time only if an idle task is flushed as well.
func (t *Thread) flushDue(now time.Time) {
	for _, o := range t.tasks {
		if o.state != nil {
			o.state.FlushIfDue(now)
		}
	}
}

// prepare finds the tasks that have something to commit.
func (t *Thread) prepare() bool {
	any := t.txn.open
	for _, o := range t.tasks {
		o.commit.active = o.task.CommitNeeded()
		any = any || o.commit.active
	}
	return any
}

// produceChangelogs is C1. A commit that was put off has its changelog produced again, with what came since.
func (t *Thread) produceChangelogs() error {
	for _, o := range t.tasks {
		if !o.commit.active {
			continue
		}
		if err := t.produceOutbox(o); err != nil {
			return err
		}
		if err := o.task.FlushChangelog(); err != nil {
			return err
		}
		if len(o.task.Outbox().Records) == 0 {
			continue
		}
		if err := t.beginTxn(); err != nil {
			return err
		}
		l := t.sink.load()
		l.out = o.task.SwapOutbox(l.out)
		t.stats.Changelog.Add(int64(len(l.out.Records)))
		previous := o.commit.changelog
		o.commit.changelog = l
		if err := t.sink.send(l, o.id, o.topics, o.changelogs); err != nil {
			return t.produceFailed(err)
		}
		if previous != nil {
			t.sink.recycle(previous)
		}
	}
	return nil
}

// commitOffsets is C4, and C5 in a transaction.
func (t *Thread) commitOffsets() error {
	var all []classic.Offset
	for _, o := range t.tasks {
		o.commit.offsets = o.commit.offsets[:0]
		if !o.commit.active {
			continue
		}
		for _, p := range o.task.Positions() {
			o.commit.offsets = append(o.commit.offsets, classic.Offset{
				Topic: p.Topic, Partition: p.Partition, At: p.Next, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata,
			})
		}
		all = append(all, o.commit.offsets...)
	}
	if t.txn.open {
		return t.commitTxn(all)
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.cfg.CommitTimeout)
	defer cancel()
	err := t.group.Commit(ctx, all)
	t.points.reach(AtC4)
	return t.commitFailed(err)
}

// commitFailed turns what the group said to a commit into what the thread does: nothing on success, wait, or give up.
func (t *Thread) commitFailed(err error) error {
	switch {
	case err == nil:
		t.deaf = false
		return nil
	case errors.Is(err, membership.ErrRebalance):
		return errPutOff
	case errors.Is(err, membership.ErrLost):
		return t.migrated(err)
	case t.ctx.Err() != nil:
		return context.Cause(t.ctx)
	case unanswered(err) || unavailable(err):
		if !t.deaf {
			t.log.Warn("a commit was not answered, it is tried again", "thread", t.name, "err", err)
		}
		t.deaf = true
		return errPutOff
	default:
		return fmt.Errorf("committing offsets: %w", err)
	}
}

// applyCommits is C6 for every task that took part.
func (t *Thread) applyCommits() error {
	for _, o := range t.tasks {
		if !o.commit.active {
			continue
		}
		if err := t.applyCommit(o); err != nil {
			return fmt.Errorf("task %v: %w", o.id, err)
		}
		for _, off := range o.commit.offsets {
			o.setStart(partition{off.Topic, off.Partition}, off.At)
		}
		if o.commit.changelog != nil {
			t.sink.recycle(o.commit.changelog)
		}
		o.commit.changelog, o.commit.active = nil, false
	}
	return nil
}

// applyCommit is C6 for one task. A disk that is full takes nothing and loses nothing: the same batch is tried again, for as long as
// any other part of a commit may take.
func (t *Thread) applyCommit(o *owned) error {
	positions := o.changelogPositions()
	for deadline := time.Now().Add(t.cfg.CommitTimeout); ; {
		err := o.task.Committed(positions)
		if !stalled(err) || time.Now().After(deadline) {
			return err
		}
		t.log.Warn("local state cannot be written now, trying again", "thread", t.name, "task", o.id, "err", err)
		if err := pause(t.ctx, stallRetry); err != nil {
			return err
		}
	}
}

// stallRetry is the pause before state that could not be written is written again.
const stallRetry = 500 * time.Millisecond

// stalled tells that an engine has refused a write which may succeed later.
func stalled(err error) bool {
	e, ok := errors.AsType[*statestore.StoreError](err)
	return ok && e.Stalled
}

// changelogPositions is C3: positions of the stores whose changelog got records in this commit.
func (o *owned) changelogPositions() []statestore.Offset {
	l := o.commit.changelog
	if l == nil {
		return nil
	}
	var moved []statestore.Offset
	for i, next := range l.next {
		if next > 0 {
			moved = append(moved, statestore.Offset{Store: o.stores[i], Next: next})
		}
	}
	return moved
}

// setStart notes where a partition would be read again after an abort.
func (o *owned) setStart(p partition, at int64) {
	for i := range o.inputs {
		if o.inputs[i].partition == p {
			o.inputs[i].start = at
		}
	}
}
