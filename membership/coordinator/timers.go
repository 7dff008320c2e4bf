package coordinator

import (
	"container/heap"
	"time"
)

type timerKind uint8

const (
	sessionTimer      timerKind = iota // a member was silent, or a pending id did not come back
	joinTimer                          // the members had their time to rejoin
	initialTimer                       // one round of the initial rebalance delay is over
	absenceTimer                       // the static members that are missing count as absent
	syncTimer                          // the members had their time to sync
	registrationTimer                  // offline members have been offline for long enough
	expansionTimer                     // newcomers have waited for long enough
	expiryTimer                        // look for expired offsets and groups
)

const notQueued = -1

// timer is a deadline of a member, a group or the machine. It is part of what it belongs to, so arming it does not
// allocate.
type timer struct {
	kind   timerKind
	group  *group
	member *member // of a session timer of a member
	id     string  // of a session timer of a pending id
	due    instant // when it fires
	queued instant // where it stands in the queue: never after due
	order  uint64  // among equal queued times
	index  int     // in the queue, or notQueued
}

// timerQueue is a heap by queued time. A heartbeat only moves due; the queue follows when the timer comes to its top,
// so that a heartbeat costs no reordering.
type timerQueue struct {
	heap  []*timer
	order uint64
}

func (q *timerQueue) Len() int { return len(q.heap) }

func (q *timerQueue) Less(i, j int) bool {
	a, b := q.heap[i], q.heap[j]
	return a.queued < b.queued || a.queued == b.queued && a.order < b.order
}

func (q *timerQueue) Swap(i, j int) {
	q.heap[i], q.heap[j] = q.heap[j], q.heap[i]
	q.heap[i].index, q.heap[j].index = i, j
}

func (q *timerQueue) Push(x any) {
	t := x.(*timer)
	t.index = len(q.heap)
	q.heap = append(q.heap, t)
}

func (q *timerQueue) Pop() any {
	last := len(q.heap) - 1
	t := q.heap[last]
	q.heap[last] = nil
	q.heap = q.heap[:last]
	t.index = notQueued
	return t
}

func (q *timerQueue) arm(t *timer, due instant) {
	t.due = due
	switch {
	case t.index == notQueued:
		q.order++
		t.queued, t.order = due, q.order
		heap.Push(q, t)
	case due < t.queued:
		t.queued = due
		heap.Fix(q, t.index)
	}
}

func (q *timerQueue) cancel(t *timer) {
	if t.index != notQueued {
		heap.Remove(q, t.index)
	}
}

// next brings the timer that fires first to the top and returns it, or nil.
func (q *timerQueue) next() *timer {
	for len(q.heap) > 0 {
		t := q.heap[0]
		if t.due == t.queued {
			return t
		}
		q.order++
		t.queued, t.order = t.due, q.order
		heap.Fix(q, 0)
	}
	return nil
}

// NextDeadline says when [Machine.Step] must be called (with [Tick]) even if nothing arrives.
func (m *Machine) NextDeadline() (time.Time, bool) {
	t := m.timers.next()
	if t == nil {
		return time.Time{}, false
	}
	return m.base.Add(time.Duration(t.due)), true
}

func (m *Machine) fireDue() {
	for t := m.timers.next(); t != nil && t.due <= m.now; t = m.timers.next() {
		m.timers.cancel(t)
		m.fire(t)
	}
}

func (m *Machine) fire(t *timer) {
	switch t.kind {
	case sessionTimer:
		m.sessionExpired(t)
	case joinTimer:
		m.completeJoin(t.group)
	case initialTimer:
		m.initialDelayOver(t.group)
	case absenceTimer:
		m.absenceDue(t.group)
	case syncTimer:
		m.syncTimeout(t.group)
	case registrationTimer:
		m.offlineDue(t.group)
	case expansionTimer:
		m.newcomersDue(t.group)
	case expiryTimer:
		m.expireOffsets()
	}
}

func (m *Machine) arm(t *timer, after time.Duration) { m.timers.arm(t, m.now+instant(after)) }

func (m *Machine) cancel(t *timer) { m.timers.cancel(t) }

// heard restarts a member's session: it was heard of.
func (m *Machine) heard(mb *member) {
	mb.lastContact, mb.offline = m.now, false
	m.arm(&mb.session, mb.session.group.session(mb))
}

// sessionExpired removes whoever was silent for too long. A member whose request is parked here is not silent; its
// session starts again when the request is answered. A new member is the exception: nobody knows whether it is still
// there, and it would hold up the rebalance for ever (KAFKA-9232).
func (m *Machine) sessionExpired(t *timer) {
	g, mb := t.group, t.member
	if mb == nil {
		g.dropPending(m, t.id)
		m.membersExpired(g)
		return
	}
	if !mb.isNew && (mb.join.waiting || mb.sync.waiting) {
		return
	}
	if g.keepsOffline(mb) {
		m.goOffline(g, mb)
		return
	}
	m.removeExpired(g, mb)
}

// removeExpired removes members whose sessions are over, in one rebalance.
func (m *Machine) removeExpired(g *group, gone ...*member) {
	for _, mb := range gone {
		m.refuseParkedJoin(g, mb)
		m.refuseParkedSync(mb)
		m.removeMember(g, mb)
	}
	m.storeRemovals(g, storedNothing{})
	if g.state == stable || g.state == completingRebalance {
		m.prepareRebalance(g)
		return
	}
	m.membersExpired(g)
}

// membersExpired lets a rebalance that waited only for those who are gone complete.
func (m *Machine) membersExpired(g *group) {
	if g.state != preparingRebalance || !m.allJoined(g) || g.initial && m.holds(initialRebalanceRunsFull) {
		return
	}
	m.completeJoin(g)
}
