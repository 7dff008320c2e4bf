package thread

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/assign"
	"github.com/millrace-io/millrace/membership/classic"
	"github.com/millrace-io/millrace/membership/codec"
)

// New returns a thread that has done nothing yet. The restorer is shared by the process' threads.
func New(cfg *Config, restorer *Restorer) *Thread {
	t := &Thread{
		cfg:        cfg,
		name:       cfg.name(),
		log:        cfg.Logger,
		points:     newPoints(cfg.Logger, cfg.name()),
		restorer:   restorer,
		opening:    map[taskid.ID]*opening{},
		opened:     make(chan *opening),
		routes:     map[partition]*route{},
		generation: codec.NoGeneration,
		batch:      1,
		stats:      new(Stats),
		stop:       make(chan classic.LeaveMode, 1),
		relaid:     make(chan struct{}, 1),
		dead:       make(chan struct{}),
	}
	t.lifecycle.notify = func(from, to State) {
		t.publish()
		if cfg.OnState != nil {
			cfg.OnState(from, to)
		}
	}
	t.publish()
	return t
}

// Stats returns the thread's counters, which go on counting.
func (t *Thread) Stats() *Stats { return t.stats }

// Stop asks the thread to commit, close its tasks and end, and how to leave the group then. It returns at once. It may be
// called from any goroutine, once.
func (t *Thread) Stop(leave classic.LeaveMode) { t.stop <- leave }

// Dead is closed when the thread has ended and its index may be used again.
func (t *Thread) Dead() <-chan struct{} { return t.dead }

// Place returns the place in the group that the thread had and gives up, for [classic.LeaveGroup]: the owner does that for all
// threads that end, in one batch. ok is false if the place is kept, or there is none. It may be asked once the thread is dead.
func (t *Thread) Place() (place classic.Place, ok bool) { return t.place, t.leaves }

// Stuck returns since when the thread has been busy without finishing a turn; ok is false while it waits for input.
func (t *Thread) Stuck() (since time.Time, ok bool) {
	at := t.progress.Load()
	return time.Unix(0, at), at != 0
}

// Run is the life of the thread: join, process until it is asked to stop or fails, commit, close. The end of ctx cuts all
// that short. It returns nil after a graceful stop, and otherwise why the thread died. It does not return when a user function
// calls runtime.Goexit, which ends the caller's goroutine; everything is closed then, too, and the cause is [ErrExited].
func (t *Thread) Run(ctx context.Context) error {
	defer close(t.dead)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.ctx = ctx
	t.timer = time.NewTimer(time.Hour)
	t.committed = time.Now()
	t.now = t.committed
	t.lifecycle.become(Starting)
	return t.shutdown(t.live(ctx))
}

// live joins the group and processes.
func (t *Thread) live(ctx context.Context) error {
	returned := false
	defer func() {
		if returned {
			return
		}
		if bug := recover(); bug != nil {
			panic(bug)
		}
		t.shutdown(ErrExited) // runtime.Goexit: it cannot be stopped, and nobody can be told but by Run's caller
	}()
	err := t.start()
	if err == nil {
		t.fetcher.start(ctx)
		err = t.loop()
	}
	returned = true
	return err
}

// start makes the clients and joins the group. Under exactly-once the transactional id is initialised (O2) while the group
// driver joins on its own goroutine: the first of either may have to wait until a fresh cluster has made an internal topic.
// What the driver says is heard in the loop only, so whatever an earlier incarnation left open is decided before positions
// are read.
func (t *Thread) start() error {
	producer, err := t.cfg.newProducer()
	if err != nil {
		return err
	}
	t.sink = newSink(t.ctx, producer)
	client, err := t.cfg.newConsumer()
	if err != nil {
		return err
	}
	t.requests, t.consumer = client, client
	t.fetcher = newFetcher(client, t.cfg.MaxPollRecords, configuredSizes(client))
	driver, err := classic.Start(t.ctx, t.groupConfig())
	if err != nil {
		return err
	}
	t.group = driver
	if !t.cfg.exactlyOnce() {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.cfg.CommitTimeout)
	defer cancel()
	return t.cfg.initTransactionalID(ctx, producer)
}

// initTransactionalID is O2, and the same again for a producer that replaces one.
func (c *Config) initTransactionalID(ctx context.Context, producer *kgo.Client) error {
	if _, _, err := producer.ProducerID(ctx); err != nil {
		return fmt.Errorf("initialising the transactional id %s: %w", c.TransactionalID, err)
	}
	return nil
}

func (t *Thread) groupConfig() classic.Config {
	return classic.Config{
		Client:            t.requests,
		Group:             t.cfg.AppID,
		ClientID:          t.cfg.ClientID,
		InstanceID:        t.cfg.InstanceID,
		SessionTimeout:    t.cfg.SessionTimeout,
		RebalanceTimeout:  t.cfg.RebalanceTimeout,
		HeartbeatInterval: t.cfg.HeartbeatInterval,
		Topics:            t.cfg.Plan.SourceTopics(),
		Subscription:      t.subscription,
		Tasks:             func() []assign.Task { return t.cfg.Layout().Assignable },
		Logger:            t.log,
	}
}

// subscription is what the leader is told about this thread. The driver's goroutine calls it.
func (t *Thread) subscription() codec.Subscription {
	sub := codec.Subscription{
		ProcessID:    t.cfg.ProcessID,
		ClientID:     t.cfg.ClientID,
		Endpoint:     t.cfg.Endpoint,
		TopologyHash: t.cfg.Plan.Hash,
	}
	for _, s := range t.cfg.Plan.Subtopologies {
		sub.Subtopologies = append(sub.Subtopologies, s.ID)
	}
	for _, id := range t.cfg.LocalTasks() {
		sub.Offsets = append(sub.Offsets, codec.TaskOffset{Task: id})
	}
	return sub
}

// shutdown ends the thread in an orderly way, as far as the cause allows.
func (t *Thread) shutdown(cause error) error {
	t.lifecycle.become(PendingShutdown)
	graceful := errors.Is(cause, ErrStopped)
	if t.fetcher != nil {
		t.fetcher.stop() // what was in hand is not processed: it is read again
	}
	if graceful {
		cause = t.lastCommit()
	}
	if cause == nil {
		cause = t.group.Err() // nobody hears events any more
	}
	_, t.fenced = errors.AsType[*membership.FencedError](cause)
	t.cancelOpenings(func(taskid.ID) bool { return true })
	gone := t.tasks
	t.tasks = nil
	t.publish()
	t.closeStates(gone)
	t.closeClients(cause)
	t.lifecycle.become(Dead)
	return cause
}

// lastCommit commits what the tasks have done so far.
func (t *Thread) lastCommit() error {
	err := t.commitWithin(t.cfg.CloseTimeout / 2)
	if errors.Is(err, errPutOff) || errors.Is(err, errMigrated) || errors.Is(err, errAborted) {
		t.log.Warn("the last commit before the stop was not possible, its input is processed again", "thread", t.name, "err", err)
		return nil
	}
	return err
}

// closeClients ends the transaction that may be open, the membership and the clients.
func (t *Thread) closeClients(cause error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.cfg.CloseTimeout/2)
	defer cancel()
	if t.txn.open {
		// Otherwise readers would wait for its time-out. If this fails they do, and nothing else happens.
		if err := t.abortQuietly(ctx); err != nil {
			t.log.Warn("aborting the open transaction", "thread", t.name, "err", err)
		}
	}
	if t.group != nil {
		t.place, t.leaves = t.group.Retire(t.leave)
	}
	if t.sink != nil {
		t.sink.client.Close()
	}
	if t.requests != nil {
		t.requests.Close()
	}
}
