package streams

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/membership/classic"
	"github.com/millrace-io/millrace/metadata"
	"github.com/millrace-io/millrace/metadata/rest"
)

// App runs a topology: some stream threads, their local state and, if wanted, a REST side. It is made by [New] and runs once,
// in [App.Run]. All other methods may be called from any goroutine at any time.
type App struct {
	cfg      Config
	plan     *topology.Plan
	state    stateBox
	started  atomic.Bool
	process  atomic.Pointer[process] // set while and after Run has started up
	closing  chan closeRequest
	resizing chan resize
	done     chan struct{} // closed when Run has returned
}

// closeRequest asks the supervisor to stop, in a mode of leaving.
type closeRequest struct{ mode CloseMode }

// New checks the configuration, builds the topology and returns an application that does not run yet. All mistakes are
// reported together.
func New(b *Builder, cfg Config) (*App, error) {
	if b == nil {
		return nil, failure(KindConfig, errors.New("streams.New: the builder is nil"))
	}
	appID := cfg.AppID
	if checkAppID(appID) != nil {
		appID = "app" // Validate tells of the bad one, once
	}
	plan, buildErr := b.Build(appID)
	if err := errors.Join(cfg.Validate(), buildErr); err != nil {
		return nil, failure(KindConfig, err)
	}
	a := &App{cfg: cfg.withDefaults(), plan: plan, closing: make(chan closeRequest, 1), resizing: make(chan resize), done: make(chan struct{})}
	a.state.listen = func(from, to State) {
		a.cfg.Logger.Info("state changed", "app", a.cfg.AppID, "from", from.String(), "to", to.String())
		if a.cfg.OnStateChange != nil {
			a.cfg.OnStateChange(from, to)
		}
	}
	return a, nil
}

// Run starts the application and blocks until it has stopped. The end of ctx is a graceful stop: threads commit, flush and
// close their state, within Config.CloseTimeout. Run returns nil after a graceful stop, and otherwise an *[Error] that tells
// what ended the application; everything has been closed then, too. An App runs once.
func (a *App) Run(ctx context.Context) error {
	if !a.started.CompareAndSwap(false, true) {
		return failure(KindOther, errors.New("Run was called before: make a new App to run again"))
	}
	defer close(a.done)
	p, err := a.open(ctx)
	if err == nil {
		a.process.Store(p)
		err = p.supervise(ctx)
		if closed := p.close(); err == nil {
			err = closed
		}
	}
	if err != nil && p == nil && ctx.Err() != nil {
		err = nil // asked to stop while it started: nothing had been begun
	}
	if err != nil {
		a.state.become(PendingError)
		a.state.become(Failed)
		return err
	}
	a.state.become(NotRunning)
	return nil
}

// Close asks the application to stop gracefully and waits until Run has returned. mode overrides Config.CloseMode unless it is
// CloseDefault. The end of ctx cuts the wait short, not the stop.
func (a *App) Close(ctx context.Context, mode CloseMode) error {
	if !a.started.Load() {
		return ErrNotRunning
	}
	select {
	case a.closing <- closeRequest{mode}:
	default: // asked before
	}
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// State returns where the application is in its life.
func (a *App) State() State { return a.state.load() }

// Topology returns the topology in Kafka's text form.
func (a *App) Topology() string { return a.plan.Describe() }

// Threads returns what each stream thread last said of itself.
func (a *App) Threads() []metadata.ThreadStatus {
	p := a.process.Load()
	if p == nil {
		return nil
	}
	var all []metadata.ThreadStatus
	for _, t := range p.threads() {
		s := t.Status()
		all = append(all, metadata.ThreadStatus{
			Name: s.Name, State: s.State.String(), InstanceID: s.InstanceID, MemberID: s.MemberID,
			Generation: s.Generation, Active: s.Active, Fenced: s.Fenced,
		})
	}
	return all
}

// Metadata returns who runs the application, and what each process has: Kafka Streams' StreamsMetadata with instance ids. What
// it says of other processes comes from the group's coordinator and is up to [metadata.DefaultMaxAge] old.
func (a *App) Metadata(ctx context.Context) (metadata.Snapshot, error) {
	p := a.process.Load()
	if p == nil {
		return metadata.Snapshot{}, ErrNotRunning
	}
	s, err := p.group.Get(ctx)
	if err != nil {
		return metadata.Snapshot{}, failure(KindBroker, fmt.Errorf("asking for the members of group %s: %w", a.cfg.AppID, err))
	}
	return s.WithLocal(p.identity, a.Threads()), nil
}

// Handler serves the REST side: metadata, instances, topology, health and metrics. Use it in a server of your own in place of
// Config.RESTAddr.
func (a *App) Handler() http.Handler { return rest.Handler(querier{a}) }

// querier is the application as the REST side sees it.
type querier struct{ *App }

// State returns the name of the state.
func (q querier) State() string { return q.App.State().String() }

// Process says who answers.
func (q querier) Process() metadata.Process {
	if p := q.process.Load(); p != nil {
		return p.identity
	}
	return metadata.Process{ApplicationID: q.cfg.AppID, Group: q.cfg.AppID, ClientID: q.cfg.ClientID}
}

// leaveMode translates a mode for the group's driver.
func (m CloseMode) leaveMode() classic.LeaveMode {
	switch m {
	case Leave:
		return classic.Leave
	case Remain:
		return classic.Remain
	default:
		return classic.LeaveDefault
	}
}
