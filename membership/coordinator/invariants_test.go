package coordinator

import (
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// check verifies what must hold between any two steps: the invariants of group, one answer for every request, and
// that every request without an answer is known to the machine, so that nothing is parked for ever by mistake.
func (w *world) check() error {
	for _, g := range w.m.groups {
		if err := g.check(); err != nil {
			return fmt.Errorf("group %s: %w", g.id, err)
		}
	}
	if err := w.m.checkTxns(); err != nil {
		return err
	}
	waiting := w.m.waiting()
	if len(w.twice) > 0 {
		return fmt.Errorf("%s was answered twice", w.title(w.twice[0]))
	}
	for id, s := range w.requests {
		if !waiting[id] && !w.forgotten(s) {
			return fmt.Errorf("%s is neither answered nor parked", w.title(s))
		}
	}
	return nil
}

// forgotten reports whether a request is one that Kafka never answers: a Join or Sync that its member repeats, or the Sync
// of a member that is removed by a leave (D17).
func (w *world) forgotten(s *sent) bool {
	if s.forgotten || w.m.holds(repeatedRequestIsAnswered) {
		return s.forgotten
	}
	for _, other := range []map[uint64]*sent{w.requests, w.done} {
		for id, later := range other {
			s.forgotten = s.forgotten || id > s.id && repeats(later.req, s.req)
		}
	}
	if q, ok := s.req.(*kmsg.SyncGroupRequest); ok {
		g := w.m.groups[q.Group]
		s.forgotten = s.forgotten || g == nil || g.byID[q.MemberID] == nil
	}
	return s.forgotten
}

// repeats reports whether a member sends the same kind of request again. The first Join may have had no id yet.
func repeats(later, earlier kmsg.Request) bool {
	switch q := later.(type) {
	case *kmsg.JoinGroupRequest:
		e, ok := earlier.(*kmsg.JoinGroupRequest)
		return ok && q.Group == e.Group && q.MemberID != "" && (e.MemberID == "" || e.MemberID == q.MemberID)
	case *kmsg.SyncGroupRequest:
		e, ok := earlier.(*kmsg.SyncGroupRequest)
		return ok && q.Group == e.Group && q.MemberID == e.MemberID
	}
	return false
}

// checkTxns verifies that a marker finds every group that has offsets pending on its transaction, and what is on its way.
func (m *Machine) checkTxns() error {
	underWay := make(map[*group]map[topicPartition]inFlight)
	for _, pending := range m.appends {
		if c, ok := pending.then.(*committing); ok {
			for _, o := range c.commits {
				if underWay[c.group] == nil {
					underWay[c.group] = make(map[topicPartition]inFlight)
				}
				f := underWay[c.group][o.topicPartition]
				f.all++
				if c.txn != nil {
					f.txn++
				}
				underWay[c.group][o.topicPartition] = f
			}
		}
	}
	found := 0
	for _, g := range m.groups {
		for producer := range g.open {
			if _, ok := m.txns[producer][g]; !ok {
				return fmt.Errorf("group %s: the marker of producer %d would not find it", g.id, producer)
			}
			found++
		}
		for tp, f := range underWay[g] {
			f.tombstone = g.inFlight[tp].tombstone
			underWay[g][tp] = f
		}
		if !maps.Equal(g.inFlight, underWay[g]) {
			return fmt.Errorf("group %s: %v is under way, counted %v", g.id, underWay[g], g.inFlight)
		}
	}
	for _, groups := range m.txns {
		found -= len(groups)
	}
	if found != 0 {
		return fmt.Errorf("transactions of groups that are gone: %d", -found)
	}
	return nil
}

// waiting lists the requests that the machine will still answer.
func (m *Machine) waiting() map[uint64]bool {
	list := make(map[uint64]bool)
	for _, g := range m.groups {
		for _, mb := range g.members {
			if mb.join.waiting {
				list[mb.join.id] = true
			}
			if mb.sync.waiting {
				list[mb.sync.id] = true
			}
		}
		for _, n := range g.newcomers {
			list[n.join.id] = true
		}
	}
	for _, pending := range m.appends {
		switch c := pending.then.(type) {
		case *committing:
			list[c.request] = true
		case *leaveStored:
			list[c.request] = true
		case *offsetsDeleted:
			if then, ok := c.then.(*offsetDeleteStored); ok {
				list[then.request] = true
			}
		case *groupDeleted:
			if c.batch != nil {
				list[c.batch.request] = true
			}
		}
	}
	return list
}

func (g *group) check() error {
	joins, support := 0, make(map[string]int)
	instances := make(map[string]*member)
	for _, mb := range g.members {
		if g.byID[mb.id] != mb {
			return fmt.Errorf("G1: member %s is not found by its id", mb.id)
		}
		if mb.static() {
			if other := instances[*mb.instanceID]; other != nil {
				return fmt.Errorf("G1: %s and %s hold instance %s", other.id, mb.id, *mb.instanceID)
			}
			instances[*mb.instanceID] = mb
			if g.byInstance[*mb.instanceID] != mb {
				return fmt.Errorf("G1: member %s is not found by its instance id", mb.id)
			}
		}
		if mb.join.waiting {
			joins++
		}
		for _, p := range mb.protocols {
			support[p.Name]++
		}
		if g.state != dead && mb.session.index == notQueued && !mb.join.waiting && !mb.sync.waiting && !mb.offline {
			return fmt.Errorf("member %s has no session and nothing parked: it could stay for ever", mb.id)
		}
	}
	return g.checkCounts(joins, support, instances)
}

func (g *group) checkCounts(joins int, support map[string]int, instances map[string]*member) error {
	switch {
	case len(g.newcomers) > 0 && (g.state != stable || g.expansion.index == notQueued):
		return fmt.Errorf("newcomers in %s, or without a timer: they could wait for ever", g.state)
	case g.force != nil && g.state != preparingRebalance:
		return fmt.Errorf("a forced rebalance in %s: it is never reported", g.state)
	case slices.ContainsFunc(g.members, func(mb *member) bool { return mb.offline }) && g.registration.index == notQueued:
		return fmt.Errorf("offline members without a timer: they could stay for ever")
	case len(g.byID) != len(g.members) || len(g.byInstance) != len(instances):
		return fmt.Errorf("G1: %d members, %d by id; %d static, %d by instance", len(g.members), len(g.byID), len(instances), len(g.byInstance))
	case g.leader != "" && g.byID[g.leader] == nil:
		return fmt.Errorf("G2: leader %s is not a member", g.leader)
	case len(g.members) > 0 && g.leader == "":
		return fmt.Errorf("G2: members without a leader")
	case joins != g.parkedJoins:
		return fmt.Errorf("G3: %d joins are parked, counted %d", joins, g.parkedJoins)
	case !maps.Equal(support, g.supporters):
		return fmt.Errorf("G4: support is %v, counted %v", support, g.supporters)
	case g.state == stable && g.supporters[g.protocol] != len(g.members):
		return fmt.Errorf("Stable with protocol %s, which not all members offer", g.protocol)
	case g.state == completingRebalance && g.owing() && g.syncs.index == notQueued:
		return fmt.Errorf("Completing without a sync timer: it could last for ever")
	case g.state == empty && len(g.members) > 0, g.state != empty && g.state != dead && g.state != preparingRebalance && len(g.members) == 0:
		return fmt.Errorf("%s with %d members", g.state, len(g.members))
	case g.state == preparingRebalance && g.join.index == notQueued && !g.overdue:
		return fmt.Errorf("Preparing without a join timer: it could last for ever")
	}
	return nil
}
