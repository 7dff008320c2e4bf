package thread

import (
	"slices"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/statestore"
)

// Status is what a thread tells about itself. It is immutable.
type Status struct {
	Name       string
	State      State
	InstanceID string // empty for a dynamic member
	MemberID   string // empty while the thread is not a member
	Generation int32
	Active     []taskid.ID // running or being opened
	Fenced     bool        // another process has the instance id now
}

// Status returns the latest status. Any goroutine may call it.
func (t *Thread) Status() Status { return *t.status.Load() }

// States returns the states of the running tasks that have stores. Any goroutine may call it and take committed views;
// one whose task closes meanwhile answers [statestore.ErrClosed]. The map must not be changed.
func (t *Thread) States() map[taskid.ID]*statestore.State { return *t.states.Load() }

// publish makes a new snapshot for other goroutines.
func (t *Thread) publish() {
	s := Status{Name: t.name, State: t.lifecycle.state, InstanceID: t.cfg.InstanceID, Generation: t.generation, Fenced: t.fenced}
	if t.group != nil {
		if token, ok := t.group.Token(); ok {
			s.MemberID, s.Generation = token.MemberID, token.Generation
		}
	}
	states := map[taskid.ID]*statestore.State{}
	for _, o := range t.tasks {
		s.Active = append(s.Active, o.id)
		if o.state != nil {
			states[o.id] = o.state
		}
	}
	for id := range t.opening {
		s.Active = append(s.Active, id)
	}
	slices.SortFunc(s.Active, taskid.ID.Compare)
	t.status.Store(&s)
	t.states.Store(&states)
}
