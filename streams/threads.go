package streams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-io/millrace/thread"
)

// ThreadDecision is what becomes of an application when one of its stream threads has died.
type ThreadDecision uint8

const (
	// StopApp ends the application. It is the default.
	StopApp ThreadDecision = iota
	// ReplaceThread starts a new thread in the dead one's place, with its instance id: the group notices nothing if that
	// happens within the session time-out. What made the thread die may do so again, so a replacement begins after a pause.
	ReplaceThread
)

// replacePause is how long the place of a dead thread stays empty: a cause that does not go away must not keep the process busy.
var replacePause = time.Second

// slot is a thread's place in the process. Its index makes the thread's names, instance id and transactional id, so it is used
// again only when the thread that had it is dead.
type slot struct {
	index  int
	thread *thread.Thread
}

// threads returns the threads of the process, by index.
func (p *process) threads() []*thread.Thread {
	slots := *p.slots.Load()
	all := make([]*thread.Thread, len(slots))
	for i, s := range slots {
		all[i] = s.thread
	}
	return all
}

// resize asks the supervisor for a thread more or less.
type resize struct {
	add  bool
	done chan resized // has room for the answer
}

// resized is the answer: the name of the thread.
type resized struct {
	name string
	err  error
}

// AddThread starts one more stream thread, Kafka Streams' addStreamThread, and returns its name. It gets the smallest index that
// no other thread has. The number of threads of a later start is still that of Config.Threads.
func (a *App) AddThread(ctx context.Context) (name string, err error) { return a.resize(ctx, true) }

// RemoveThread stops the stream thread with the highest index, Kafka Streams' removeStreamThread, makes it leave the group,
// whatever the close mode is, and returns its name when its tasks are free. The last thread cannot be removed. The end of ctx cuts the
// wait short, not the removal.
func (a *App) RemoveThread(ctx context.Context) (name string, err error) { return a.resize(ctx, false) }

func (a *App) resize(ctx context.Context, add bool) (string, error) {
	if !a.started.Load() {
		return "", ErrNotRunning
	}
	req := resize{add: add, done: make(chan resized, 1)}
	select {
	case a.resizing <- req:
	case <-a.done:
		return "", ErrNotRunning
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	select {
	case r := <-req.done:
		return r.name, r.err
	case <-a.done: // with the answer, or without one if the thread did not end
		select {
		case r := <-req.done:
			return r.name, r.err
		default:
			return "", ErrNotRunning
		}
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// resize starts or stops a thread.
func (s *supervisor) resize(req resize) {
	switch {
	case s.stopping:
		req.done <- resized{err: ErrNotRunning}
	case req.add:
		name, err := s.addThread()
		req.done <- resized{name, err}
	default:
		s.removeThread(req)
	}
}

func (s *supervisor) addThread() (string, error) {
	slots := slices.Clone(*s.slots.Load())
	if len(slots) >= maxThreads {
		return "", fmt.Errorf("the process has %d threads, more are not allowed", maxThreads)
	}
	at := 0 // the first gap: slots are sorted by index, from 1
	for at < len(slots) && slots[at].index == at+1 {
		at++
	}
	t, err := s.newThread(at + 1)
	if err != nil {
		return "", failure(KindConfig, err)
	}
	slots = slices.Insert(slots, at, slot{at + 1, t})
	s.slots.Store(&slots)
	s.start(t, 0)
	s.notify()
	return t.Status().Name, nil
}

// removeThread stops the last thread that is not being removed already; see removed.
func (s *supervisor) removeThread(req resize) {
	left := slices.DeleteFunc(s.threads(), func(t *thread.Thread) bool { _, going := s.removing[t]; return going })
	if len(left) < 2 {
		req.done <- resized{err: errors.New("the last stream thread cannot be removed: close the application instead")}
		return
	}
	t := left[len(left)-1]
	s.removing[t] = req
	t.Stop(Leave.leaveMode())
}

// removed ends the removal of a thread: its slot is free, and it leaves the group. The supervisor does not wait for that.
func (s *supervisor) removed(req resize, o outcome) {
	name := o.thread.Status().Name
	s.vacate(o.thread)
	if o.err != nil {
		err := fromThread(name, o.err)
		req.done <- resized{name, err}
		s.fail(err)
		return
	}
	place, ok := o.thread.Place()
	s.leaving.Go(func() {
		var err error
		if ok {
			err = s.leave("the stream thread was removed", place)
		}
		if err != nil {
			err = fromThread(name, err)
		}
		req.done <- resized{name, err}
	})
}

// vacate gives up a thread's slot.
func (s *supervisor) vacate(t *thread.Thread) {
	slots := slices.DeleteFunc(slices.Clone(*s.slots.Load()), func(sl slot) bool { return sl.thread == t })
	s.slots.Store(&slots)
	s.notify()
}

// replace puts a new thread into the slot of a dead one, if that is wanted and allowed. A fenced thread is never replaced: it
// would take the instance id back from the process that has it now, and the two would trade it for ever.
func (s *supervisor) replace(dead *thread.Thread, err *Error) bool {
	decide := s.app.cfg.OnThreadError
	if s.stopping || decide == nil || err.Kind == KindFenced || decide(err) != ReplaceThread {
		return false
	}
	s.logFailure("a stream thread died and is replaced", err)
	slots := slices.Clone(*s.slots.Load())
	at := slices.IndexFunc(slots, func(sl slot) bool { return sl.thread == dead })
	t, failed := s.newThread(slots[at].index)
	if failed != nil {
		s.fail(failure(KindConfig, failed))
		return true
	}
	if place, ok := dead.Place(); ok { // a dynamic member: its successor is another one
		s.leaving.Go(func() {
			if err := s.leave("the stream thread died", place); err != nil {
				s.app.cfg.Logger.Warn("leaving the group", "app", s.app.cfg.AppID, "err", err)
			}
		})
	}
	slots[at].thread = t
	s.slots.Store(&slots)
	s.start(t, replacePause)
	return true
}
