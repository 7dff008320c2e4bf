package streams

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/assign"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/pebblestore"
	"github.com/millrace-io/millrace/thread"
)

// makeThreads prepares the restore plane, the stores and the threads, which do not run yet.
func (p *process) makeThreads(context.Context) error {
	cfg := &p.app.cfg
	client, err := kgo.NewClient(append(cfg.clientOptions(), kgo.ClientID(p.identity.ClientID+"-restore-consumer"), kgo.AlwaysRetryEOF())...)
	if err != nil {
		return failure(KindConfig, fmt.Errorf("Kafka client: %w", err))
	}
	p.restorer = thread.NewRestorer(client, cfg.Guarantee == ExactlyOnce, min(runtime.GOMAXPROCS(0), maxRestoring), cfg.Logger)
	p.stores = pebblestore.NewShared(tuneStores(pebblestore.Config{
		MemoryBudget: cfg.StateMemory / 2, Tasks: stateful(p.layout.Load().Assignable), FlushInterval: cfg.StateFlushInterval, Logger: cfg.Logger,
		OnFatal: p.stateFailed,
	}))
	var slots []slot
	for i := range cfg.Threads {
		t, err := p.newThread(i + 1)
		if err != nil {
			return failure(KindConfig, err)
		}
		slots = append(slots, slot{index: i + 1, thread: t})
	}
	p.slots.Store(&slots)
	return nil
}

// stateFailed ends the application when an engine is lost to this process, also one that nobody writes to.
func (p *process) stateFailed(err *statestore.StoreError) {
	select {
	case p.broken <- failure(KindState, err):
	default: // it ends already
	}
}

// maxRestoring bounds how many tasks restore at once.
const maxRestoring = 8

func stateful(tasks []assign.Task) int {
	n := 0
	for _, t := range tasks {
		if t.Stateful {
			n++
		}
	}
	return max(n, 1)
}

// newThread makes the thread with an index, which does not run yet.
func (p *process) newThread(index int) (*thread.Thread, error) {
	cfg, err := p.threadConfig(index)
	if err != nil {
		return nil, err
	}
	return thread.New(cfg, p.restorer), nil
}

func (p *process) threadConfig(index int) (*thread.Config, error) {
	cfg := &p.app.cfg
	tc := &thread.Config{
		AppID: cfg.AppID, ClientID: p.identity.ClientID, ProcessID: p.identity.ProcessID, Endpoint: p.identity.Host, Index: index,
		Plan: p.app.plan, Layout: p.layout.Load, Refresh: p.refresh,
		Client: cfg.clientOptions(), Compression: compressions[cfg.Compression], Linger: cfg.Linger,
		Identity:   statestore.Identity{ApplicationID: cfg.AppID, ClusterID: p.clusterID},
		OpenEngine: p.openEngine, DiscardState: p.discardState, LocalTasks: p.localTasks,
		OnDecodeError: cfg.OnDecodeError.forTask(), OnProcessError: cfg.OnProcessError.forTask(),
		ResetLatest:    cfg.OffsetReset == Latest,
		CommitInterval: cfg.CommitInterval, CommitTimeout: commitTimeout, CloseTimeout: cfg.CloseTimeout,
		SessionTimeout: cfg.SessionTimeout, RebalanceTimeout: cfg.RebalanceTimeout, HeartbeatInterval: cfg.HeartbeatInterval,
		TransactionTimeout:  cfg.TransactionTimeout,
		UncommittedMaxBytes: cfg.UncommittedMaxBytes / int64(cfg.Threads),
		CacheBytes:          cfg.StateMemory / 2 / int64(stateful(p.layout.Load().Assignable)),
		MaxPollRecords:      cfg.BufferedRecords, FetchMaxBytes: cfg.FetchMaxBytes,
		Logger: cfg.Logger, OnState: func(_, _ thread.State) { p.notify() },
	}
	if cfg.static() {
		id, err := membership.InstanceID(cfg.ClientID, index)
		if err != nil {
			return nil, err
		}
		tc.InstanceID = id
	}
	if cfg.Guarantee == ExactlyOnce {
		tc.TransactionalID = transactionalID(cfg.AppID, tc.InstanceID, p.identity.ProcessID, index)
	}
	return tc, nil
}

// commitTimeout bounds the requests of one commit. What they were for is not lost: the commit is tried again.
var commitTimeout = 30 * time.Second

// transactionalID is the thread's own. That of a static member follows from its instance id, so that a restart fences what its
// predecessor left, also on a new disk; two applications may share a client id, hence the application's.
func transactionalID(app, instance, process string, index int) string {
	if instance != "" {
		return app + "-" + instance
	}
	return fmt.Sprintf("%s-%s-%d", app, process, index)
}

// notify makes the supervisor look at the threads' states.
func (p *process) notify() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *process) openEngine(id taskid.ID) (statestore.Engine, string, error) {
	dir := p.dir.TaskDir(id)
	store, err := p.stores.Open(dir)
	if err != nil {
		return nil, dir, err
	}
	return wrapEngine(store), dir, nil
}

// wrapEngine and tuneStores are where tests put faults.
var (
	wrapEngine = func(e statestore.Engine) statestore.Engine { return e }
	tuneStores = func(c pebblestore.Config) pebblestore.Config { return c }
)

func (p *process) discardState(id taskid.ID) error {
	aside, err := statestore.RenameAside(p.dir.TaskDir(id), time.Now())
	if err == nil {
		p.app.cfg.Logger.Warn("local state was set aside; remove it when you do not need it", "task", id, "dir", aside)
	}
	return err
}

// localTasks lists the tasks with state on this disk. A hint for the leader: without it tasks only move more.
func (p *process) localTasks() []taskid.ID {
	ids, err := p.dir.Tasks()
	if err != nil {
		p.app.cfg.Logger.Warn("listing local state", "err", err)
	}
	return ids
}
