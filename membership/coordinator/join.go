package coordinator

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// onJoin serves JoinGroup (versions 0 to 9): the checks before the state machine, in Kafka's order.
func (m *Machine) onJoin(r Request, q *kmsg.JoinGroupRequest) {
	if q.Version == 0 {
		q.RebalanceTimeoutMillis = q.SessionTimeoutMillis // version 0 has no rebalance timeout (KAFKA-8653)
	}
	switch session := millis(q.SessionTimeoutMillis); {
	case q.Group == "":
		m.refuseJoin(r, q, q.MemberID, kerr.InvalidGroupID)
		return
	case session < m.cfg.MinSessionTimeout || session > m.cfg.MaxSessionTimeout:
		m.refuseJoin(r, q, q.MemberID, kerr.InvalidSessionTimeout)
		return
	case q.InstanceID != nil && m.holds(instanceIDsAreChecked) && !validInstanceID(*q.InstanceID):
		m.refuseJoin(r, q, q.MemberID, kerr.InvalidRequest)
		return
	}
	g, err := m.lookup(q.Group)
	switch {
	case err != nil:
		m.refuseJoin(r, q, "", err)
	case g == nil && q.MemberID != "":
		m.refuseJoin(r, q, q.MemberID, kerr.UnknownMemberID)
	case g == nil:
		g = m.newGroup(q.Group, PartitionFor(q.Group, m.cfg.OffsetsPartitions))
		m.joinGroup(g, r, q)
		m.storeNewGroup(g, r.ID)
	default:
		m.joinGroup(g, r, q)
	}
}

func (m *Machine) joinGroup(g *group, r Request, q *kmsg.JoinGroupRequest) {
	replaced := g.replacedBy(q)
	discounted := replaced
	if !m.holds(supportIgnoresReplaced) {
		discounted = nil
	}
	switch {
	case !m.hasRoom(g, q, replaced):
		m.removeByID(g, q.MemberID)
		m.refuseJoin(r, q, "", kerr.GroupMaxSizeReached)
	case g.state == dead:
		m.refuseJoin(r, q, q.MemberID, kerr.CoordinatorNotAvailable)
	case !g.supports(q.ProtocolType, q.Protocols, discounted):
		m.refuseJoin(r, q, q.MemberID, kerr.InconsistentGroupProtocol)
	case replaced != nil:
		m.replaceStatic(g, replaced, r, q)
	case q.MemberID == "" && q.InstanceID != nil:
		m.joinNewStatic(g, r, q)
	case q.MemberID == "" && q.Version >= 4:
		m.handOutID(g, r, q)
	case q.MemberID == "":
		m.addMember(g, m.newMemberID(r.ClientID), r, q)
	case g.pending[q.MemberID] != nil:
		m.joinPending(g, r, q)
	default:
		m.rejoin(g, r, q)
	}
}

// joinNewStatic serves an instance id that is not in the group.
func (m *Machine) joinNewStatic(g *group, r Request, q *kmsg.JoinGroupRequest) {
	at, waits := g.newcomer(q.InstanceID)
	delete(g.settings.dismissed, *q.InstanceID) // it is a new member now, whatever it was before
	switch {
	case g.settings.refuses(*q.InstanceID):
		m.refuseJoin(r, q, "", kerr.InvalidRequest)
	case waits:
		m.replaceNewcomer(g, at, r, q)
	case g.holdsNewcomer(*q.InstanceID):
		m.addNewcomer(g, r, q)
	default:
		m.addMember(g, m.newMemberID(*q.InstanceID), r, q)
	}
}

// hasRoom is the check of group.max.size. While the members join, those count that are there already (KAFKA-9885).
func (m *Machine) hasRoom(g *group, q *kmsg.JoinGroupRequest, replaced *member) bool {
	if replaced != nil && m.holds(replacementIsNotGrowth) {
		return true
	}
	if _, waits := g.newcomer(q.InstanceID); waits {
		return true
	}
	known := g.byID[q.MemberID]
	switch g.state {
	case preparingRebalance:
		return known != nil && known.join.waiting || g.parkedJoins < m.cfg.MaxGroupSize
	case completingRebalance, stable:
		return known != nil || len(g.members)+len(g.newcomers) < m.cfg.MaxGroupSize
	}
	return true
}

// removeByID takes an id that was refused for lack of room out of the group.
func (m *Machine) removeByID(g *group, id string) {
	g.dropPending(m, id)
	if mb := g.byID[id]; mb != nil {
		m.removeMember(g, mb)
	}
}

// newMemberID makes an id whose prefix tells whose it is: clients recognise the leader's by it.
func (m *Machine) newMemberID(prefix string) string { return prefix + "-" + m.cfg.NewID(prefix) }

// handOutID answers a new dynamic member with an id to come back with (KIP-394), so that a client whose answer was
// lost does not leave a member behind.
func (m *Machine) handOutID(g *group, r Request, q *kmsg.JoinGroupRequest) {
	id := m.newMemberID(r.ClientID)
	t := &timer{kind: sessionTimer, group: g, id: id, index: notQueued}
	g.pending[id] = t
	m.arm(t, millis(q.SessionTimeoutMillis))
	m.refuseJoin(r, q, id, kerr.MemberIDRequired)
}

func (m *Machine) joinPending(g *group, r Request, q *kmsg.JoinGroupRequest) {
	if q.InstanceID == nil {
		m.addMember(g, q.MemberID, r, q)
		return
	}
	if m.holds(pendingWithInstanceIsUnknown) {
		m.refuseJoin(r, q, q.MemberID, kerr.UnknownMemberID)
		return
	}
	m.refuseJoin(r, q, "", kerr.UnknownServerError)
}

// addMember adds a new member, parks its join and rebalances.
func (m *Machine) addMember(g *group, id string, r Request, q *kmsg.JoinGroupRequest) {
	g.dropPending(m, id)
	mb := m.newMember(g, id, r, q)
	g.grown = g.grown || g.state == preparingRebalance && g.initial
	g.add(mb, q.ProtocolType)
	m.parkJoin(g, mb, r, q)
	m.arm(&mb.session, m.cfg.NewMemberJoinTimeout)
	m.rebalanceOrComplete(g)
}

func (m *Machine) newMember(g *group, id string, r Request, q *kmsg.JoinGroupRequest) *member {
	mb := &member{
		id:               id,
		instanceID:       q.InstanceID,
		clientID:         r.ClientID,
		clientHost:       r.Host,
		sessionTimeout:   millis(q.SessionTimeoutMillis),
		rebalanceTimeout: millis(q.RebalanceTimeoutMillis),
		protocols:        q.Protocols,
		lastContact:      m.now,
		isNew:            true,
	}
	mb.session = timer{kind: sessionTimer, group: g, member: mb, index: notQueued}
	return mb
}

// rejoin serves a member that the group knows.
func (m *Machine) rejoin(g *group, r Request, q *kmsg.JoinGroupRequest) {
	mb, err := g.validate(q.MemberID, q.InstanceID)
	if err != nil {
		m.refuseJoin(r, q, q.MemberID, err)
		return
	}
	unchanged := mb.offers(q.Protocols)
	switch {
	case g.state == completingRebalance && unchanged, g.state == stable && unchanged && g.leader != mb.id:
		// The answer to its last join was lost, or it only wants to know: the present generation stands. In Completing
		// the leader gets the member list again, because it has still to assign.
		m.returned(mb)
		resp := g.joined(mb)
		resp.Version = q.Version
		m.reply(r.ID, resp)
	default:
		g.setProtocols(mb, q.Protocols)
		mb.sessionTimeout, mb.rebalanceTimeout = millis(q.SessionTimeoutMillis), millis(q.RebalanceTimeoutMillis)
		m.parkJoin(g, mb, r, q)
		m.rebalanceOrComplete(g)
	}
}

// parkJoin lets a member's join wait. One that waits already was given up by its client; REBALANCE_IN_PROGRESS asks a
// client that is still there to join again.
func (m *Machine) parkJoin(g *group, mb *member, r Request, q *kmsg.JoinGroupRequest) {
	if mb.join.waiting {
		if m.holds(repeatedRequestIsAnswered) {
			m.reply(mb.join.id, joinRefused(mb.id, mb.join.version, kerr.RebalanceInProgress))
		}
		g.parkedJoins--
	}
	mb.join = parked{r.ID, q.Version, true}
	mb.lastContact, mb.offline = m.now, false
	g.parkedJoins++
}

// refuseParkedJoin answers the parked join of a member that is being removed.
func (m *Machine) refuseParkedJoin(g *group, mb *member) {
	if mb.join.waiting {
		m.answerJoin(g, mb, joinRefused("", mb.join.version, kerr.UnknownMemberID))
	}
}

func (m *Machine) refuseJoin(r Request, q *kmsg.JoinGroupRequest, memberID string, err *kerr.Error) {
	m.reply(r.ID, joinRefused(memberID, q.Version, err))
}

func joinRefused(memberID string, version int16, err *kerr.Error) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.ErrorCode = err.Code
	resp.Generation = -1
	resp.MemberID = memberID
	resp.Version = version
	return resp
}

// joined is the answer that makes a member part of the present generation; the leader's has the member list.
func (g *group) joined(mb *member) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.Generation = g.generation
	resp.ProtocolType = nullable(g.protocolType)
	resp.Protocol = nullable(g.protocol)
	resp.LeaderID = g.leader
	resp.MemberID = mb.id
	if g.leader == mb.id {
		resp.Members = g.memberList()
	}
	return resp
}

// memberList is what the leader assigns to: everybody with what he says under the selected protocol, absent static
// members included and spares left out.
func (g *group) memberList() []kmsg.JoinGroupResponseMember {
	list := make([]kmsg.JoinGroupResponseMember, 0, len(g.members))
	for _, mb := range g.members {
		if mb.spare {
			continue
		}
		entry := kmsg.NewJoinGroupResponseMember()
		entry.MemberID, entry.InstanceID, entry.ProtocolMetadata = mb.id, mb.instanceID, mb.metadata(g.protocol)
		list = append(list, entry)
	}
	return list
}

// nullable is the wire form of a string that "" means the absence of.
func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func millis(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }
