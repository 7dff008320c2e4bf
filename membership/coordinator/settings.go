package coordinator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Settings are promises to one group that Kafka does not make. The drafts of KIP-345 asked for them; Kafka never shipped
// them. The zero value is all off, which is Kafka. They are independent of the [Profile].
type Settings struct {
	// RegistrationTimeout keeps a static member whose session has ended in the group, as offline. So long after the
	// earliest of the offline members went, all that are offline then leave in one rebalance. Who comes back before
	// is a member as if nothing had happened. 0: a session that ends ends the membership.
	RegistrationTimeout time.Duration

	// ExpansionTimeout lets the JoinGroup of a new static member wait while the group stays Stable, so that several
	// which start one after the other cost one rebalance: so long after the first of them, or with any other rebalance.
	// It should be shorter than the clients wait for their answer (Java: the rebalance timeout and 5 s). 0: at once.
	ExpansionTimeout time.Duration

	// Expected are the instance ids that the group is going to have. While some of them are missing, the others of
	// them wait as with ExpansionTimeout (if that is 0, for their rebalance timeout); when the last arrives, the group
	// rebalances. Ids that a change takes off the list leave together in one rebalance when all of them are offline.
	Expected []string

	// RefuseUnexpected answers INVALID_REQUEST to new static members that are not in Expected.
	RefuseUnexpected bool

	// TargetSize is how many members get work: the first by instance id, then dynamic members. The others are hot
	// spares: members that the leader does not see and so assigns nothing to. 0: everybody gets work.
	TargetSize int

	// SpareSession shortens the sessions of static members with work while there are spares to take over. 0: it does not.
	SpareSession time.Duration
}

// Validate reports every setting that is out of bounds.
func (s Settings) Validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"registration timeout", s.RegistrationTimeout},
		{"expansion timeout", s.ExpansionTimeout},
		{"spare session", s.SpareSession},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("group settings: the %s is %v; want 0 (off) or more", f.name, f.value))
		}
	}
	if s.TargetSize < 0 {
		errs = append(errs, fmt.Errorf("group settings: the target size is %d; want 0 (off) or more", s.TargetSize))
	}
	if s.RefuseUnexpected && len(s.Expected) == 0 {
		errs = append(errs, errors.New("group settings: to refuse who is not expected needs expected instance ids: it would refuse everybody"))
	}
	if s.SpareSession > 0 && s.TargetSize == 0 {
		errs = append(errs, errors.New("group settings: the spare session needs a target size: without it there are no spares"))
	}
	seen := make(map[string]bool, len(s.Expected))
	for _, id := range s.Expected {
		if !validInstanceID(id) {
			errs = append(errs, fmt.Errorf("group settings: %q is expected, which is not an instance id (1 to 249 of [A-Za-z0-9._-])", id))
		} else if seen[id] {
			errs = append(errs, fmt.Errorf("group settings: %q is expected twice", id))
		}
		seen[id] = true
	}
	return errors.Join(errs...)
}

// settings are a group's settings and what follows from their last change. They outlive the group and its partition.
type settings struct {
	Settings
	dismissed map[string]struct{} // instance ids that were expected and are no longer
}

// settingsOf returns a group's settings; a group that was never configured shares the zero ones.
func (m *Machine) settingsOf(group string) *settings {
	if s := m.settings[group]; s != nil {
		return s
	}
	return &m.unset
}

// Dismissed returns the instance ids, sorted, that are to leave a group after a change of its settings: those that were
// expected, or dismissed already, and are not expected now. Who expects nobody in particular dismisses nobody.
func Dismissed(before Settings, already []string, after Settings) []string {
	if len(after.Expected) == 0 {
		return nil
	}
	expected := make(map[string]bool, len(after.Expected))
	for _, id := range after.Expected {
		expected[id] = true
	}
	ids := slices.Concat(before.Expected, already)
	ids = slices.DeleteFunc(ids, func(id string) bool { return expected[id] })
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (m *Machine) onConfigure(ev Configure) {
	before := m.settingsOf(ev.Group)
	after := &settings{Settings: ev.Settings, dismissed: make(map[string]struct{})}
	after.Expected = slices.Clone(ev.Settings.Expected)
	known := slices.AppendSeq(slices.Clone(ev.Dismissed), maps.Keys(before.dismissed))
	for _, id := range Dismissed(before.Settings, known, after.Settings) {
		after.dismissed[id] = struct{}{}
	}
	m.settings[ev.Group] = after
	g := m.groups[ev.Group]
	if g == nil {
		return
	}
	g.settings = after
	if g.state == dead {
		return
	}
	if ev.RemoveNow {
		m.removeDismissed(g)
	}
	m.offlineDue(g)
	m.newcomersDue(g)
}

// expects reports whether an instance id is on the list.
func (s *settings) expects(instanceID string) bool { return slices.Contains(s.Expected, instanceID) }

// refuses reports whether a new static member may not join.
func (s *settings) refuses(instanceID string) bool {
	return s.RefuseUnexpected && !s.expects(instanceID)
}
