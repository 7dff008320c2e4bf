package coordinator

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// onLeave serves LeaveGroup (versions 0 to 5): one member id up to version 2, a batch of identities from 3 on. It is
// also how an operator removes static members: by instance id, without a member id. A batch leads to one rebalance.
func (m *Machine) onLeave(r Request, q *kmsg.LeaveGroupRequest) {
	resp := kmsg.NewPtrLeaveGroupResponse()
	resp.Version = q.Version
	leaving := q.Members
	if q.Version < 3 {
		one := kmsg.NewLeaveGroupRequestMember()
		one.MemberID = q.MemberID
		leaving = []kmsg.LeaveGroupRequestMember{one}
	}
	g, err := m.checkLeave(q)
	if err != nil {
		resp.ErrorCode = err.Code
		m.reply(r.ID, resp)
		return
	}
	stored := false
	if g == nil {
		for _, id := range leaving {
			resp.Members = append(resp.Members, left(id, kerr.UnknownMemberID))
		}
	} else {
		resp.Members, stored = m.leaveAll(g, leaving, &leaveStored{r.ID, resp})
	}
	if q.Version < 3 {
		resp.ErrorCode = resp.Members[0].ErrorCode
		resp.Members = nil
	}
	if !stored {
		m.reply(r.ID, resp)
	}
}

func (m *Machine) checkLeave(q *kmsg.LeaveGroupRequest) (*group, *kerr.Error) {
	if q.Group == "" {
		return nil, kerr.InvalidGroupID
	}
	g, err := m.lookup(q.Group)
	if g != nil && g.state == dead {
		return nil, kerr.CoordinatorNotAvailable
	}
	return g, err
}

// leaveAll removes a batch and rebalances once. It reports whether the answer has to wait for a record.
func (m *Machine) leaveAll(g *group, leaving []kmsg.LeaveGroupRequestMember, then *leaveStored) ([]kmsg.LeaveGroupResponseMember, bool) {
	answers := make([]kmsg.LeaveGroupResponseMember, 0, len(leaving))
	changed := false
	for _, id := range leaving {
		err, counts := m.leave(g, id)
		changed = changed || err == nil && counts
		answers = append(answers, left(id, err))
	}
	stored := m.storeRemovals(g, then)
	if changed && g.state != empty {
		m.rebalanceOrComplete(g)
	}
	return answers, stored
}

// leave removes one identity. counts tells whether that concerns the others; the leave of an id that was only handed
// out concerns a rebalance that waits for it and, in Kafka, also a group that does not.
func (m *Machine) leave(g *group, id kmsg.LeaveGroupRequestMember) (err *kerr.Error, counts bool) {
	var mb *member
	switch {
	case id.MemberID == "" && id.InstanceID == nil:
		return kerr.UnknownMemberID, false
	case id.MemberID == "":
		if at, waits := g.newcomer(id.InstanceID); waits {
			m.dropNewcomer(g, at, kerr.UnknownMemberID)
			return nil, false
		}
		if mb = g.byInstance[*id.InstanceID]; mb == nil {
			return kerr.UnknownMemberID, false
		}
	case g.dropPending(m, id.MemberID):
		return nil, g.state == preparingRebalance || !m.holds(pendingLeaveIsSilent)
	default:
		if mb, err = g.validate(id.MemberID, id.InstanceID); err != nil {
			return err, false
		}
	}
	m.refuseParkedJoin(g, mb)
	m.refuseParkedSync(mb)
	m.removeMember(g, mb)
	return nil, true
}

// refuseParkedSync answers the parked Sync of a member that is being removed.
func (m *Machine) refuseParkedSync(mb *member) {
	if mb.sync.waiting && m.holds(leaveAnswersParkedSync) {
		m.reply(mb.sync.id, syncRefused(mb.sync.version, kerr.UnknownMemberID))
	}
}

// left echoes the identity as it was asked for: "" stays "" (KAFKA-8678).
func left(id kmsg.LeaveGroupRequestMember, err *kerr.Error) kmsg.LeaveGroupResponseMember {
	e := kmsg.NewLeaveGroupResponseMember()
	e.MemberID, e.InstanceID, e.ErrorCode = id.MemberID, id.InstanceID, code(err)
	return e
}

// leaveStored waits for the record of a removal.
type leaveStored struct {
	request uint64
	resp    *kmsg.LeaveGroupResponse
}

// appended answers the leave. If the removal is not durable, the whole request is refused: repeated, it says which
// members are gone already.
func (c *leaveStored) appended(m *Machine, err *kerr.Error) {
	if err != nil {
		c.resp.ErrorCode = code(storeError(err))
		c.resp.Members = nil
	}
	m.reply(c.request, c.resp)
}
