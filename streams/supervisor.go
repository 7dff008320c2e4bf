package streams

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-io/millrace/membership/classic"
	"github.com/millrace-io/millrace/thread"
)

// watchEvery is how often the supervisor looks whether threads make progress.
const watchEvery = time.Second

// lingering is how long the supervisor waits for a thread that was cut short: only a user function that does not return can
// outlast it.
var lingering = 10 * time.Second

// leaveTimeout bounds the one LeaveGroup that is sent for all threads that give up their places.
var leaveTimeout = 10 * time.Second

// outcome is how a thread ended.
type outcome struct {
	thread *thread.Thread
	err    error
}

// supervisor runs the threads. All fields belong to the goroutine in run.
type supervisor struct {
	*process
	hard     context.Context // ends all threads at once
	cut      context.CancelCauseFunc
	ended    chan outcome
	running  int
	removing map[*thread.Thread]resize // threads that somebody waits to be gone
	places   []classic.Place           // of ended threads, to be given up together
	leaving  sync.WaitGroup            // LeaveGroup requests under way for single threads

	stopping bool
	mode     CloseMode
	err      error            // the first failure
	deadline <-chan time.Time // of the graceful stop, then of the cut
	wasCut   bool
}

// supervise runs the threads until the application is asked to stop or one of them fails, and then stops the others.
func (p *process) supervise(ctx context.Context) error {
	hard, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	watched, unwatch := context.WithCancel(hard)
	var watching sync.WaitGroup
	defer func() {
		cut(nil)
		unwatch()
		watching.Wait()
	}()
	p.app.state.become(Rebalancing)
	s := supervisor{process: p, hard: hard, cut: cut, ended: make(chan outcome, maxThreads), removing: map[*thread.Thread]resize{}}
	for _, t := range p.threads() {
		s.start(t, 0)
	}
	watching.Go(func() { p.watchTopics(watched) })
	err := s.run(ctx)
	s.leaving.Wait()
	return s.leaveTogether(err)
}

// start runs a thread, after a pause.
func (s *supervisor) start(t *thread.Thread, after time.Duration) {
	s.running++
	go func() {
		if after > 0 {
			select {
			case <-time.After(after):
			case <-s.hard.Done():
			}
		}
		err := thread.ErrExited // stays if Run does not return
		defer func() { s.ended <- outcome{t, err} }()
		err = t.Run(s.hard)
	}()
}

func (s *supervisor) run(ctx context.Context) error {
	watch := time.NewTicker(watchEvery)
	defer watch.Stop()
	cancelled := ctx.Done()
	for s.running > 0 {
		select {
		case <-s.changed:
			if !s.stopping {
				s.app.state.become(ofThreads(s.threads()))
			}
		case o := <-s.ended:
			s.threadEnded(o)
		case err := <-s.serving:
			s.fail(failure(KindOther, err))
		case err := <-s.broken:
			s.fail(err)
		case req := <-s.app.resizing:
			s.resize(req)
		case <-cancelled:
			cancelled = nil
			s.stop(PendingShutdown, CloseDefault)
		case req := <-s.app.closing:
			s.stop(PendingShutdown, req.mode)
		case <-watch.C:
			s.watch()
		case <-s.deadline:
			if s.wasCut {
				return s.abandon()
			}
			s.cutShort(failure(KindStuck, fmt.Errorf("the graceful stop took longer than Config.CloseTimeout (%v): the brokers do not answer, or a user function does not return; "+
				"what was not committed is processed again", s.app.cfg.CloseTimeout)))
		}
	}
	return s.err
}

// threadEnded notes how a thread ended. A thread does not end by itself but for a failure, and a failure ends the application
// unless the thread is replaced.
func (s *supervisor) threadEnded(o outcome) {
	s.running--
	if req, ok := s.removing[o.thread]; ok {
		delete(s.removing, o.thread)
		s.removed(req, o)
		return
	}
	if o.err != nil {
		err := fromThread(o.thread.Status().Name, o.err)
		if s.replace(o.thread, err) {
			return
		}
		s.fail(err)
	}
	if place, ok := o.thread.Place(); ok {
		s.places = append(s.places, place)
	}
}

// fail notes a failure and stops everything.
func (s *supervisor) fail(err *Error) {
	if s.err == nil {
		s.err = err
		s.logFailure("the application ends", err)
	}
	s.stop(PendingError, CloseDefault)
}

// logFailure logs why a thread ended, with the stack if a user function panicked.
func (p *process) logFailure(what string, err *Error) {
	args := []any{"app", p.app.cfg.AppID, "err", err}
	if len(err.Stack) > 0 {
		args = append(args, "stack", string(err.Stack))
	}
	p.app.cfg.Logger.Error(what, args...)
}

// stop asks all threads to end gracefully. An application that ends because of a failure never makes its static members
// leave: it is likely to be started again.
func (s *supervisor) stop(state State, mode CloseMode) {
	if s.stopping {
		if state == PendingError {
			s.app.state.become(PendingError)
		}
		return
	}
	s.stopping = true
	s.app.state.become(state)
	if mode == CloseDefault {
		mode = s.app.cfg.CloseMode
	}
	if state == PendingError && mode == Leave {
		mode = CloseDefault
	}
	s.mode = mode
	for _, t := range s.threads() {
		if _, stopped := s.removing[t]; !stopped {
			t.Stop(mode.leaveMode())
		}
	}
	s.deadline = time.After(s.app.cfg.CloseTimeout)
}

// cutShort ends all threads at once.
func (s *supervisor) cutShort(cause error) {
	s.wasCut = true
	s.cut(cause)
	s.deadline = time.After(lingering)
}

// watch ends the application when a thread makes no progress.
func (s *supervisor) watch() {
	limit := s.app.cfg.ProgressTimeout
	if limit < 0 || s.stopping {
		return
	}
	for _, t := range s.threads() {
		since, busy := t.Stuck()
		if !busy || time.Since(since) < limit {
			continue
		}
		name := t.Status().Name
		err := failure(KindStuck, fmt.Errorf("no progress since %s: a user function does not return, or the brokers do not answer", since.Format(time.RFC3339)))
		err.Thread = name
		s.fail(err)
		s.cutShort(err)
		return
	}
}

// abandon gives up waiting for threads that do not return.
func (s *supervisor) abandon() error {
	s.abandoned = true
	if s.err == nil {
		s.err = failure(KindStuck, fmt.Errorf("%d stream threads did not end: a user function does not return", s.running))
	}
	return s.err
}

// leaveTogether gives up the places of all threads that leave in one batch, so that the group rebalances once. Who asked for
// [Leave] hears when that failed; otherwise the places are free after the session time-out at the latest.
func (s *supervisor) leaveTogether(err error) error {
	failed := s.leave("the process has stopped", s.places...)
	if failed == nil {
		return err
	}
	if err == nil && s.mode == Leave {
		err := fromThread("", failed)
		s.logFailure("the application has stopped, but kept its places in the group", err)
		return err
	}
	s.app.cfg.Logger.Warn("leaving the group", "app", s.app.cfg.AppID, "err", failed)
	return err
}

// leave gives up places in one request.
func (p *process) leave(why string, places ...classic.Place) error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	return classic.LeaveGroup(ctx, p.admin, p.app.cfg.AppID, why, places...)
}
