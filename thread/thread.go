package thread

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/classic"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/thread/task"
)

// A turn processes up to so many records of each task that it takes about a millisecond: it bounds how long the other tasks
// and events wait, and what is done once a turn does not count. The number follows the time that the last turns took, because
// a user function may take a microsecond or a minute.
const (
	maxTurnRecords = 512
	shortTurn      = 5 * time.Millisecond
	longTurn       = 50 * time.Millisecond
)

// ErrStopped is the cause of a thread's end when it was asked to stop.
var ErrStopped = errors.New("the stream thread was asked to stop")

// ErrExited is the cause of a thread's end when a user function ended its goroutine.
var ErrExited = errors.New("a user function ended the goroutine of its stream thread by runtime.Goexit, as testing's FailNow and Fatal do: return an error instead")

// Thread is one stream thread. All fields belong to the goroutine in Run, except those that say otherwise.
type Thread struct {
	cfg    *Config
	name   string
	log    *slog.Logger
	points points
	ctx    context.Context // cut short: ends every wait at once

	group    Group
	requests *kgo.Client // group requests
	consumer consumer    // the same client, as far as fetching needs it
	fetcher  *fetcher
	sink     *sink
	restorer *Restorer

	lifecycle lifecycle
	tasks     []*owned // those that run, sorted by id
	opening   map[taskid.ID]*opening
	opened    chan *opening
	late      []*opening // came while others were waited for
	routes    map[partition]*route

	generation int32
	batch      int               // records of each task in a turn
	outOfRange []partition       // positions to reset
	slab       []topology.Record // scratch of acceptPartition
	now        time.Time         // read once a turn
	committed  time.Time         // when the last commit was done
	retryAt    time.Time         // not before this a commit that was put off is tried again
	deaf       bool              // the last commit was not answered, which has been logged
	txn        transaction
	timer      *time.Timer

	stats    *Stats                                          // written here, read anywhere
	status   atomic.Pointer[Status]                          // written here, read anywhere
	states   atomic.Pointer[map[taskid.ID]*statestore.State] // written here, read anywhere
	progress atomic.Int64                                    // unix nanoseconds of the last turn that did something; 0 while idle
	stop     chan classic.LeaveMode                          // has the mode when a graceful stop is asked for
	relaid   chan struct{}                                   // holds a token after the layout changed
	leave    classic.LeaveMode
	fenced   bool          // another process has the instance id; set when the thread is dead
	place    classic.Place // set when the thread is dead
	leaves   bool
	dead     chan struct{} // closed when Run has returned
}

// owned is a task that the thread runs, with everything that is looked up once and not per record.
type owned struct {
	id         taskid.ID
	task       *task.Task
	state      *statestore.State // nil without stores
	inputs     []input
	topics     []string // sinks, then changelogs: what the outbox' topic indexes mean
	stores     []string // in the order of the sub-topology
	changelogs []string // of the stores
	stats      task.Stats
	published  task.Stats // what of stats is in the thread's
	expired    int64      // the same of the state's
	commit     taskCommit
}

// input is a source partition of a task.
type input struct {
	partition
	index int   // in the task
	start int64 // the committed offset: where processing (re)starts
}

// loop turns until the thread is asked to stop (nil), cut short or fails.
func (t *Thread) loop() error {
	for {
		if err := t.turn(); err != nil && !recovered(err) {
			return err
		}
	}
}

// turn is one pass of the loop.
func (t *Thread) turn() error {
	if err := t.attend(); err != nil {
		return err
	}
	if err := t.processTasks(); err != nil {
		return err
	}
	return t.commitIfDue()
}

// attend handles what has happened. Without work it waits for something.
func (t *Thread) attend() error {
	if err := t.sink.err(); err != nil {
		return t.produceFailed(err)
	}
	if len(t.outOfRange) > 0 {
		return t.resetPositions()
	}
	if len(t.late) > 0 {
		o := t.late[0]
		t.late = t.late[1:]
		return t.install(o)
	}
	if t.buffered() > 0 {
		t.adapt()
		return t.glance()
	}
	select { // a batch that is ready needs no timer
	case batch := <-t.fetcher.batches:
		return t.receive(batch)
	default:
	}
	t.progress.Store(0)
	t.armTimer()
	select {
	case batch := <-t.fetcher.batches:
		return t.receive(batch)
	case ev := <-t.group.Events():
		return t.handle(ev)
	case o := <-t.opened:
		return t.install(o)
	case <-t.relaid:
		return t.adoptLayout()
	case <-t.sink.progress:
	case <-t.timer.C:
	case t.leave = <-t.stop:
		return ErrStopped
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
	t.now = time.Now()
	return nil
}

// adapt sets how much the next turn does by how long the last one took.
func (t *Thread) adapt() {
	switch took := time.Since(t.now); {
	case took > longTurn:
		t.batch = max(1, t.batch/2)
	case took < shortTurn:
		t.batch = min(maxTurnRecords, 2*t.batch)
	}
}

// receive takes a batch in, and looks at everything else too, so that a steady flow of records hides no event.
func (t *Thread) receive(batch kgo.Fetches) error {
	if err := t.accept(batch); err != nil {
		return err
	}
	return t.glance()
}

// glance handles one event of each kind without waiting.
func (t *Thread) glance() error {
	t.now = time.Now()
	t.progress.Store(t.now.UnixNano())
	select {
	case ev := <-t.group.Events():
		return t.handle(ev)
	case o := <-t.opened:
		return t.install(o)
	case <-t.relaid:
		return t.adoptLayout()
	case t.leave = <-t.stop:
		return ErrStopped
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	default:
		return nil
	}
}

// armTimer makes the timer fire when the next commit is due.
func (t *Thread) armTimer() {
	t.timer.Reset(max(t.nextCommit().Sub(t.now), time.Millisecond))
}

func (t *Thread) buffered() int {
	n := 0
	for _, o := range t.tasks {
		n += o.task.BufferedTotal()
	}
	return n
}

// processTasks lets every task process a bounded number of records, and produces what it emitted.
func (t *Thread) processTasks() error {
	for _, o := range t.tasks {
		if o.task.BufferedTotal() == 0 {
			continue
		}
		_, err := o.task.Process(t.batch)
		o.collect(t.stats)
		if err != nil {
			return err
		}
		if err := t.produceOutbox(o); err != nil {
			return err
		}
	}
	return nil
}

// produceOutbox produces what a task has emitted.
func (t *Thread) produceOutbox(o *owned) error {
	if len(o.task.Outbox().Records) == 0 {
		return nil
	}
	if err := t.beginTxn(); err != nil {
		return err
	}
	l := t.sink.load()
	l.out = o.task.SwapOutbox(l.out)
	t.stats.RecordsOut.Add(int64(len(l.out.Records)))
	if err := t.sink.send(l, o.id, o.topics, nil); err != nil {
		return t.produceFailed(err)
	}
	return nil
}

// handle reacts to an event of the group membership.
func (t *Thread) handle(ev membership.Event) error {
	t.now = time.Now()
	switch ev := ev.(type) {
	case membership.Assigned:
		return t.assigned(ev)
	case membership.Revoked:
		return t.revoked(ev)
	case membership.Lost:
		return t.lost(ev.Reason)
	case membership.Fatal:
		return ev.Err
	default:
		return fmt.Errorf("thread: unknown membership event %T", ev)
	}
}
