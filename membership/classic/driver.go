package classic

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/membership"
)

// A Driver runs one group member. Its methods are safe for concurrent use; events must be handled by one goroutine, in
// order.
type Driver struct {
	cfg    Config
	client *kgo.Client
	log    *slog.Logger
	facts  facts

	events  chan membership.Event
	inputs  chan membership.Input
	revoked chan struct{}  // the thread has released what the last delivered Revoked listed
	stop    chan LeaveMode // from Close, once
	done    chan struct{}  // closed when the loop has ended

	requests sync.WaitGroup     // requests under way
	ctx      context.Context    // of every request of the membership
	cancel   context.CancelFunc // ends them

	view      atomic.Pointer[view] // written by the loop, read by commits
	closeOnce sync.Once
	closeErr  error

	// Owned by the loop.
	member      *membership.Member
	queue       []membership.Event // not yet received by the thread
	unseenLost  int                // how many of them are Lost
	delivered   membership.Revoked // the last that the thread received
	fatal       error
	leaveAs     string                // the member id to leave with, "" if there is nothing to leave
	boundsFound chan [2]time.Duration // the broker's bounds, from a join that was refused for its session timeout
}

// A view is what commits know of the member. It is immutable.
type view struct {
	token   membership.CommitToken
	ok      bool  // the token may be used
	settled bool  // no join or sync is under way
	fatal   error // set when the member is gone for good
}

// Start checks that the coordinator can be reached and is new enough for a static member, and makes the member join.
// ctx bounds the start only; the driver lives until [Driver.Close]. Errors: [*UnreachableError],
// [*membership.UnsupportedError], or the fields of cfg that cannot work.
func Start(ctx context.Context, cfg Config) (*Driver, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	facts, err := probe(ctx, cfg)
	if err != nil {
		return nil, err
	}
	d := &Driver{
		cfg: cfg, client: cfg.Client, facts: facts, member: membership.NewMember(cfg.member()),
		log:    cfg.Logger.With("group", cfg.Group, "client", cfg.ClientID, "instance", cfg.InstanceID),
		events: make(chan membership.Event), inputs: make(chan membership.Input), revoked: make(chan struct{}),
		stop: make(chan LeaveMode), done: make(chan struct{}), boundsFound: make(chan [2]time.Duration, 1),
	}
	d.warnOfShortTimeout()
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.view.Store(&view{})
	go d.run()
	return d, nil
}

// Events delivers what becomes of the member's tasks. It is closed when the driver is; after [membership.Fatal]
// nothing follows.
func (d *Driver) Events() <-chan membership.Event { return d.events }

// RevokeDone reports that the thread has committed and closed what the [membership.Revoked] that it received last
// listed.
func (d *Driver) RevokeDone() {
	select {
	case d.revoked <- struct{}{}:
	case <-d.done:
	}
}

// Token returns what commits carry now. It is false while the member has no place in the group, or has lost its tasks
// and the thread does not know yet.
func (d *Driver) Token() (membership.CommitToken, bool) {
	v := d.view.Load()
	return v.token, v.ok
}

// Err says why the member is gone for good, as [membership.Fatal] does; nil while it is not.
func (d *Driver) Err() error { return d.view.Load().fatal }

// Rejoin makes the member join again, so that the leader plans with what the member and the topics are now.
func (d *Driver) Rejoin(reason string) { d.post(membership.Rejoin{Reason: reason}) }

// InputsChanged says that Config.Tasks returns something else than before. If the member leads the group it joins again
// to make a new plan, else nothing happens: the leader's process finds out by itself.
func (d *Driver) InputsChanged() { d.post(membership.InputsChanged{}) }

// Close ends the driver: no event follows and no request is under way when it returns. With a mode that leaves, ctx
// bounds the LeaveGroup request. Later calls return the first one's result.
func (d *Driver) Close(ctx context.Context, mode LeaveMode) error {
	d.closeOnce.Do(func() {
		if place, ok := d.end(mode); ok {
			d.closeErr = LeaveGroup(ctx, d.client, d.cfg.Group, "the member was closed", place)
		}
	})
	return d.closeErr
}

// Retire ends the driver as Close does, but sends nothing: with a mode that leaves it returns the place that the caller has
// to give up by [LeaveGroup], so that several members can leave in one batch. ok is false if there is none, or if the
// driver was closed before.
func (d *Driver) Retire(mode LeaveMode) (place Place, ok bool) {
	d.closeOnce.Do(func() { place, ok = d.end(mode) })
	return place, ok
}

// end stops the loop and waits for what is under way.
func (d *Driver) end(mode LeaveMode) (Place, bool) {
	d.stop <- mode
	<-d.done
	d.requests.Wait()
	return Place{MemberID: d.leaveAs, InstanceID: d.cfg.InstanceID}, d.leaveAs != ""
}

// post hands an input to the loop, unless that has ended.
func (d *Driver) post(in membership.Input) {
	select {
	case d.inputs <- in:
	case <-d.done:
	}
}

// run is the loop: it alone touches the machine.
func (d *Driver) run() {
	defer close(d.done)
	defer close(d.events)
	defer d.cancel()
	timer := time.NewTimer(0) // fires at once, which does no harm
	defer timer.Stop()
	d.step(membership.Start{})
	for {
		d.arm(timer)
		out, next := d.head()
		select {
		case in := <-d.inputs:
			d.step(in)
		case <-timer.C:
			d.step(membership.Tick{})
		case out <- next:
			d.received(next)
		case <-d.revoked:
			d.step(d.delivered.Done())
		case mode := <-d.stop:
			d.step(membership.Stop{Leave: mode.leaves(d.cfg.InstanceID)})
			return
		}
	}
}

// arm sets the timer to the machine's deadline.
func (d *Driver) arm(timer *time.Timer) {
	at, ok := d.member.NextDeadline()
	if !ok {
		timer.Stop()
		return
	}
	timer.Reset(time.Until(at))
}

// head returns the event to deliver next; the channel is nil, and never ready, if there is none.
func (d *Driver) head() (chan<- membership.Event, membership.Event) {
	if len(d.queue) == 0 {
		return nil, nil
	}
	return d.events, d.queue[0]
}

// received notes that the thread has taken an event off the queue.
func (d *Driver) received(e membership.Event) {
	d.queue[0] = nil
	d.queue = d.queue[1:]
	switch e := e.(type) {
	case membership.Revoked:
		d.delivered = e
	case membership.Lost:
		d.unseenLost--
		d.publish()
	}
}

// step lets the machine take one input and does what it says. The view is published before any request goes out, so
// that no commit uses a token that the machine has given up.
func (d *Driver) step(in membership.Input) {
	actions := d.member.Step(time.Now(), in)
	for _, a := range actions {
		if n, ok := a.(membership.Notify); ok {
			d.enqueue(n.Event)
		}
	}
	d.publish()
	for _, a := range actions {
		d.do(a)
	}
}

func (d *Driver) do(a membership.Action) {
	switch a := a.(type) {
	case membership.SendJoin:
		if !a.Again {
			d.log.Info("joining the group", "member", a.MemberID, "reason", a.Reason)
		}
		d.send(a.Seq, func(ctx context.Context) (membership.Input, error) { return d.joinGroup(ctx, a) })
	case membership.SendSync:
		d.send(a.Seq, func(ctx context.Context) (membership.Input, error) { return d.syncGroup(ctx, a) })
	case membership.SendHeartbeat:
		d.send(a.Seq, func(ctx context.Context) (membership.Input, error) { return d.heartbeat(ctx, a) })
	case membership.SendLeave:
		d.leaveAs = a.MemberID
	case membership.Notify:
		d.logEvent(a.Event)
	case membership.Log:
		d.log.Info(a.Text)
	}
}

func (d *Driver) logEvent(e membership.Event) {
	if _, ok := e.(membership.Fatal); ok {
		d.log.Error("the group member is gone for good", "error", d.fatal)
		return
	}
	d.log.Debug("group member", "event", e) // the thread tells it when it acts on it
}

// send performs a request on a goroutine of its own and hands the answer to the loop.
func (d *Driver) send(seq uint64, request func(context.Context) (membership.Input, error)) {
	d.requests.Go(func() {
		in, err := request(d.ctx)
		if err != nil {
			in = membership.NoAnswer{Seq: seq, Err: err}
		}
		d.post(in)
	})
}

// enqueue puts an event on its way to the thread.
func (d *Driver) enqueue(e membership.Event) {
	switch e := e.(type) {
	case membership.Lost:
		d.unseenLost++
	case membership.Fatal:
		d.fatal = d.explain(e.Err)
		d.queue = append(d.queue, membership.Fatal{Err: d.fatal})
		return
	}
	d.queue = append(d.queue, e)
}

// explain adds what only the driver knows to an error of the machine.
func (d *Driver) explain(err error) error {
	if e, ok := errors.AsType[*membership.SessionTimeoutError](err); ok {
		bounds := <-d.boundsFound // the refused join has put them there before it answered
		e.Timeout, e.Min, e.Max = d.cfg.SessionTimeout, bounds[0], bounds[1]
	}
	return err
}

// publish tells commits what the member is now.
func (d *Driver) publish() {
	v := &view{fatal: d.fatal}
	v.token, v.ok = d.member.Token()
	v.ok = v.ok && d.unseenLost == 0
	v.settled = d.member.State() == membership.Stable || d.member.State() == membership.Revoking
	if old := d.view.Load(); *old != *v {
		d.view.Store(v)
	}
}
