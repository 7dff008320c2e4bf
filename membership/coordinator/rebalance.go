package coordinator

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// prepareRebalance begins a rebalance: everybody has to join again. Requests that wait for the assignment of the
// generation that ends here are told so.
func (m *Machine) prepareRebalance(g *group) {
	if g.state == completingRebalance {
		m.resetAssignments(g, kerr.RebalanceInProgress)
	}
	m.forgetSyncs(g)
	m.admitNewcomers(g)
	g.initial = g.state == empty
	m.become(g, preparingRebalance)
	if g.initial {
		g.delay = m.cfg.InitialRebalanceDelay
		g.remaining = max(g.rebalanceTimeout()-g.delay, 0)
		g.grown = false
		g.join.kind = initialTimer
		m.arm(&g.join, g.delay)
		return
	}
	if m.allJoined(g) {
		m.completeJoin(g)
		return
	}
	g.join.kind = joinTimer
	m.arm(&g.join, g.rebalanceTimeout())
	m.armAbsence(g)
}

// rebalanceOrComplete is what a changed membership leads to: a rebalance, or the completion of the one under way.
func (m *Machine) rebalanceOrComplete(g *group) {
	switch g.state {
	case preparingRebalance:
		m.maybeCompleteJoin(g)
	case empty, completingRebalance, stable:
		m.prepareRebalance(g)
	}
}

// maybeCompleteJoin completes a rebalance for which everybody is there; the initial one waits for its delay.
func (m *Machine) maybeCompleteJoin(g *group) {
	if g.state == preparingRebalance && !g.initial && m.allJoined(g) {
		m.completeJoin(g)
	}
}

// allJoined reports whether nobody is waited for.
func (m *Machine) allJoined(g *group) bool {
	if len(g.pending) > 0 {
		return false
	}
	return g.parkedJoins == len(g.members) || m.onlyAbsentMissing(g)
}

// onlyAbsentMissing reports whether all that are missing are static members that are offline, or silent for longer than
// the option lets a rebalance wait for (D14). Somebody must have joined.
func (m *Machine) onlyAbsentMissing(g *group) bool {
	if g.parkedJoins == 0 {
		return false
	}
	for _, mb := range g.members {
		if !mb.join.waiting && !m.absent(mb) {
			return false
		}
	}
	return true
}

func (m *Machine) absent(mb *member) bool {
	return mb.offline || m.cfg.AbsentStaticAfter > 0 && mb.static() && m.now >= m.absentAt(mb)
}

func (m *Machine) absentAt(mb *member) instant {
	return mb.lastContact + instant(m.cfg.AbsentStaticAfter)
}

// armAbsence looks again when the last missing static member counts as absent, if that is before the join timer.
func (m *Machine) armAbsence(g *group) {
	if m.cfg.AbsentStaticAfter == 0 {
		return
	}
	var last instant
	for _, mb := range g.members {
		if !mb.join.waiting && mb.static() {
			last = max(last, m.absentAt(mb))
		}
	}
	if last > m.now && last < g.join.due {
		m.timers.arm(&g.absence, last)
	}
}

// absenceDue completes the rebalance if those who are missing count as absent now, or looks again when they do.
func (m *Machine) absenceDue(g *group) {
	m.maybeCompleteJoin(g)
	if g.state == preparingRebalance {
		m.armAbsence(g)
	}
}

// initialDelayOver ends a round of the initial rebalance: if members arrived in it there is another one, at most
// until the rebalance timeout has passed since the first join.
func (m *Machine) initialDelayOver(g *group) {
	if !g.grown || g.remaining == 0 {
		m.completeJoin(g)
		return
	}
	g.grown = false
	previous := g.delay
	g.delay = min(m.cfg.InitialRebalanceDelay, g.remaining)
	g.remaining = max(g.remaining-previous, 0)
	m.arm(&g.join, g.delay)
}

// completeJoin ends the join phase: dynamic members that did not come are out, static ones stay until their session
// ends (KAFKA-8220), and those who wait learn the new generation.
func (m *Machine) completeJoin(g *group) {
	if g.overdue = g.renames > 0 && g.parkedJoins > 0; g.overdue {
		return // nobody is answered before; renameStored comes back here
	}
	m.cancel(&g.join)
	m.cancel(&g.absence)
	for i := len(g.members) - 1; i >= 0; i-- {
		if mb := g.members[i]; !mb.join.waiting && !mb.static() {
			m.removeMember(g, mb)
		}
	}
	if g.force != nil {
		m.dropAbsentForced(g)
	}
	g.initial = false
	g.chooseSpares()
	if len(g.members) > 0 && !g.electLeader() {
		g.join.kind = joinTimer
		m.arm(&g.join, g.rebalanceTimeout())
		return
	}
	g.generation++
	if g.force != nil {
		m.tellForced(g)
	}
	if len(g.members) == 0 {
		g.protocol, g.leader = "", ""
		g.readTopics()
		m.become(g, empty)
		m.storeImage(g, g.snapshot(nil), storedNothing{})
		return
	}
	g.protocol = g.selectProtocol()
	g.readTopics()
	m.become(g, completingRebalance)
	for _, mb := range g.members {
		m.admit(g, mb)
	}
	m.arm(&g.syncs, g.rebalanceTimeout())
}

// admit makes a member part of the generation that begins, and answers it if it is there.
func (m *Machine) admit(g *group, mb *member) {
	present := mb.join.waiting
	mb.isNew = false
	mb.owesSync = !mb.offline
	if present {
		m.answerJoin(g, mb, g.joined(mb))
	}
	if present || !mb.offline && !(mb.static() && m.cfg.AbsentStaticsKeepClock) {
		m.arm(&mb.session, g.session(mb))
	}
	if present {
		mb.lastContact = m.now
	}
}

// electLeader makes sure that the leader is among those who joined, and no spare if others are there; it reports whether
// anybody is.
func (g *group) electLeader() bool {
	if leader := g.byID[g.leader]; leader != nil && leader.join.waiting && !leader.spare {
		return true
	}
	var elected *member
	for _, mb := range g.members {
		if mb.join.waiting && (elected == nil || elected.spare && !mb.spare) {
			elected = mb
		}
	}
	if elected != nil {
		g.leader = elected.id
	}
	return elected != nil
}

// forgetSyncs ends the wait for Syncs.
func (m *Machine) forgetSyncs(g *group) {
	m.cancel(&g.syncs)
	g.ghostOwes = false
	for _, mb := range g.members {
		mb.owesSync = false
	}
}

// synced notes that a member fetched its assignment.
func (m *Machine) synced(g *group, mb *member) {
	mb.owesSync = false
	if !g.owing() {
		m.cancel(&g.syncs)
	}
}

// syncTimeout removes the members that did not fetch their assignment in time (KAFKA-12890).
func (m *Machine) syncTimeout(g *group) {
	removed := false
	for i := len(g.members) - 1; i >= 0; i-- {
		mb := g.members[i]
		if mb.owesSync && !(mb.static() && m.holds(syncTimerSparesStatics)) {
			m.removeMember(g, mb)
			removed = true
		}
	}
	if removed || g.state == completingRebalance || !m.holds(syncTimerSparesStatics) {
		m.prepareRebalance(g)
		return
	}
	m.forgetSyncs(g)
}

// resetAssignments takes the assignments of an unfinished generation away and answers those who wait for them.
func (m *Machine) resetAssignments(g *group, err *kerr.Error) {
	for _, mb := range g.members {
		mb.assignment = nil
		m.answerSync(g, mb, err)
	}
}

// answerSync answers a member's parked Sync, with its assignment unless err is set, and starts its session again.
func (m *Machine) answerSync(g *group, mb *member, err *kerr.Error) {
	if !mb.sync.waiting {
		return
	}
	m.reply(mb.sync.id, g.synced(mb, mb.sync.version, err))
	mb.sync = parked{}
	m.heard(mb)
}

// answerJoin answers a member's parked Join.
func (m *Machine) answerJoin(g *group, mb *member, resp *kmsg.JoinGroupResponse) {
	resp.Version = mb.join.version
	m.reply(mb.join.id, resp)
	mb.join = parked{}
	g.parkedJoins--
}
