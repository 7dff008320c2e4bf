package streams

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/assign"
	"github.com/millrace-io/millrace/metadata"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/pebblestore"
	"github.com/millrace-io/millrace/thread"
)

// process is everything that a running application has. open builds it up from the bottom, close takes it down.
type process struct {
	app      *App
	dir      *statestore.Dir
	stores   *pebblestore.Shared
	admin    *kgo.Client
	restorer *thread.Restorer
	slots    atomic.Pointer[[]slot] // written by the supervisor, read anywhere
	identity metadata.Process
	group    *metadata.Cache
	registry *prometheus.Registry
	server   *http.Server
	serving  chan error    // why the server ended
	changed  chan struct{} // holds a token after a thread changed its state

	clusterID string
	layout    atomic.Pointer[thread.Layout]
	looking   sync.Mutex  // held while somebody looks at the topics
	broken    chan *Error // what the watch over the topics found
	abandoned bool        // threads are still running
}

// open starts everything but the threads. After an error nothing is left open.
func (a *App) open(ctx context.Context) (*process, error) {
	p := &process{app: a, serving: make(chan error, 1), changed: make(chan struct{}, 1), broken: make(chan *Error, 1)}
	p.slots.Store(new([]slot))
	ctx, cancel := context.WithTimeout(ctx, a.cfg.StartTimeout)
	defer cancel()
	for _, step := range []func(context.Context) error{p.openDir, p.connect, p.checkTopics, p.listen, p.removeSurplus, p.makeThreads} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

// openDir locks the state directory, before anything is said to the group: a second start on the same disk by mistake must not
// fence the first.
func (p *process) openDir(context.Context) (err error) {
	if p.dir, err = statestore.LockDir(p.app.cfg.StateDir, p.app.cfg.AppID); err != nil {
		return failure(KindState, err)
	}
	id, err := p.dir.ProcessID()
	if err != nil {
		return failure(KindState, err)
	}
	p.identity = metadata.Process{
		ApplicationID: p.app.cfg.AppID, Group: p.app.cfg.AppID, ClientID: p.clientID(id), ProcessID: id,
	}
	return nil
}

// clientID is the client id of the process: the configured one, or for dynamic members one of the process id.
func (p *process) clientID(processID string) string {
	if p.app.cfg.ClientID != "" {
		return p.app.cfg.ClientID
	}
	return p.app.cfg.AppID + "-" + processID
}

// clientOptions reach the brokers. The user's own come first, so that ours win.
func (c *Config) clientOptions() []kgo.Opt {
	opts := append([]kgo.Opt{}, c.KafkaOptions...)
	opts = append(opts, kgo.SeedBrokers(c.Brokers...))
	if c.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(c.TLS))
	}
	if c.SASL != nil {
		opts = append(opts, kgo.SASL(c.SASL))
	}
	return opts
}

// connect waits for the brokers, within the start time-out, and reads the cluster's id.
func (p *process) connect(ctx context.Context) error {
	client, err := kgo.NewClient(append(p.app.cfg.clientOptions(), kgo.ClientID(p.identity.ClientID+"-admin"))...)
	if err != nil {
		return failure(KindConfig, fmt.Errorf("Kafka client: %w", err))
	}
	p.admin = client
	adm := kadm.NewClient(client)
	var last error
	for {
		meta, err := adm.BrokerMetadata(ctx)
		if err == nil {
			p.clusterID = meta.Cluster
			if err := p.dir.CheckCluster(meta.Cluster); err != nil {
				return failure(KindState, err)
			}
			p.group = metadata.NewCache(func(ctx context.Context) (metadata.Snapshot, error) {
				return metadata.Describe(ctx, adm, p.app.cfg.AppID, p.app.plan)
			}, 0, time.Now)
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-time.After(connectRetry):
		case <-ctx.Done():
			return failure(KindBroker, fmt.Errorf("no broker answered at %s within %v: %w",
				strings.Join(p.app.cfg.Brokers, ", "), p.app.cfg.StartTimeout, errors.Join(context.Cause(ctx), last)))
		}
	}
}

// connectRetry is the pause between two attempts to reach a broker at the start.
const connectRetry = 250 * time.Millisecond

// listen opens the REST side.
func (p *process) listen(context.Context) error {
	p.identity.Host = p.app.cfg.AdvertisedEndpoint
	p.registry = newRegistry(p)
	addr := p.app.cfg.RESTAddr
	if addr == "" {
		return nil
	}
	if strings.HasPrefix(addr, ":") {
		addr = "127.0.0.1" + addr
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return failure(KindConfig, fmt.Errorf("streams.Config.RESTAddr: %w", err))
	}
	if p.identity.Host == "" {
		p.identity.Host = listener.Addr().String()
	}
	p.server = &http.Server{Handler: p.app.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.serving <- fmt.Errorf("REST side at %s: %w", listener.Addr(), err)
		}
	}()
	p.app.cfg.Logger.Info("REST side listens", "url", "http://"+listener.Addr().String())
	return nil
}

// makeThreads prepares the restore plane, the stores and the threads, which do not run yet.
func (p *process) makeThreads(context.Context) error {
	cfg := &p.app.cfg
	client, err := kgo.NewClient(append(cfg.clientOptions(), kgo.ClientID(p.identity.ClientID+"-restore-consumer"), kgo.AlwaysRetryEOF())...)
	if err != nil {
		return failure(KindConfig, fmt.Errorf("Kafka client: %w", err))
	}
	p.restorer = thread.NewRestorer(client, cfg.Guarantee == ExactlyOnce, min(runtime.GOMAXPROCS(0), maxRestoring), cfg.Logger)
	p.stores = pebblestore.NewShared(pebblestore.Config{
		MemoryBudget: cfg.StateMemory / 2, Tasks: stateful(p.layout.Load().Assignable), FlushInterval: cfg.StateFlushInterval, Logger: cfg.Logger,
	})
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

// wrapEngine is where tests put faults.
var wrapEngine = func(e statestore.Engine) statestore.Engine { return e }

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

// close takes down what open built, in reverse. Threads have ended, unless they were abandoned: then what they use stays open,
// for a process that ends releases it anyway.
func (p *process) close() error {
	if p.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), serverStop)
		defer cancel()
		if err := p.server.Shutdown(ctx); err != nil {
			p.server.Close()
		}
	}
	if p.abandoned {
		return nil
	}
	if p.restorer != nil {
		p.restorer.Close()
	}
	if p.stores != nil {
		p.stores.Close()
	}
	if p.admin != nil {
		p.admin.Close()
	}
	if p.dir == nil {
		return nil
	}
	if err := p.dir.Unlock(); err != nil {
		return failure(KindState, err)
	}
	return nil
}

// serverStop is how long requests may take to end when the application stops.
const serverStop = 2 * time.Second
