package coordinator

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A static member is offline when its session has ended and the group keeps it nevertheless
// ([Settings.RegistrationTimeout], or because it is waiting to leave together with others: [Settings.Expected]). No clock
// of its own runs then; the group's registration timer does. A rebalance does not wait for it, the leader still assigns
// to it, and any request of it ends the state.

// keepsOffline reports whether a static member whose session has ended stays. Not while a spare can take its work.
func (g *group) keepsOffline(mb *member) bool {
	if !mb.static() || mb.isNew || g.spares() && !mb.spare {
		return false
	}
	return g.settings.RegistrationTimeout > 0 || g.dismisses(mb)
}

// dismisses reports whether a member was taken off the list of expected instance ids.
func (g *group) dismisses(mb *member) bool {
	if !mb.static() {
		return false
	}
	_, ok := g.settings.dismissed[*mb.instanceID]
	return ok
}

// goOffline keeps a member whose session has ended.
func (m *Machine) goOffline(g *group, mb *member) {
	mb.offline, mb.offlineSince = true, m.now
	switch {
	case g.state == completingRebalance && g.leader == mb.id:
		m.prepareRebalance(g) // nobody assigns; another one has to lead
	case g.state == preparingRebalance:
		m.membersExpired(g)
	default:
		m.synced(g, mb)
	}
	m.offlineDue(g)
}

// offlineDue removes the members that have been offline for long enough, in one rebalance, and otherwise looks again when
// they have.
func (m *Machine) offlineDue(g *group) {
	gone := g.goneTogether()
	var due instant
	found := false
	for _, mb := range g.members {
		if at := mb.offlineSince + instant(g.offlineWait(mb)); mb.offline && (!found || at < due) {
			due, found = at, true
		}
	}
	if found && due <= m.now {
		gone = slices.DeleteFunc(slices.Clone(g.members), func(mb *member) bool { return !mb.offline })
	}
	if len(gone) > 0 {
		m.removeExpired(g, gone...)
		m.offlineDue(g) // the others, if there are any, have a time of their own
		return
	}
	m.cancel(&g.registration)
	if found {
		m.timers.arm(&g.registration, due)
	}
}

// offlineWait is how long a member may be offline. One that is to leave together with others waits for them no longer
// than their sessions can last once they are silent too.
func (g *group) offlineWait(mb *member) time.Duration {
	wait := g.settings.RegistrationTimeout
	if !g.dismisses(mb) {
		return wait
	}
	var session time.Duration
	for _, other := range g.members {
		if g.dismisses(other) {
			session = max(session, other.sessionTimeout)
		}
	}
	if wait == 0 {
		return session
	}
	return min(wait, session)
}

// goneTogether returns the members that were taken off the list of expected ids, if all of them are offline.
func (g *group) goneTogether() []*member {
	var gone []*member
	for _, mb := range g.members {
		switch {
		case !g.dismisses(mb):
		case !mb.offline:
			return nil
		default:
			gone = append(gone, mb)
		}
	}
	return gone
}

// removeDismissed removes who was taken off the list of expected ids without waiting for the end of the sessions.
func (m *Machine) removeDismissed(g *group) {
	var gone []*member
	for _, mb := range g.members {
		if g.dismisses(mb) {
			gone = append(gone, mb)
		}
	}
	for at := len(g.newcomers) - 1; at >= 0; at-- {
		if g.dismisses(g.newcomers[at].member) {
			m.dropNewcomer(g, at, kerr.UnknownMemberID)
		}
	}
	if len(gone) > 0 {
		m.removeExpired(g, gone...)
	}
}

// returned ends the offline state with a request that does not restart a session in Kafka.
func (m *Machine) returned(mb *member) {
	if mb.offline {
		m.heard(mb)
	}
}
