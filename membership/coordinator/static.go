package coordinator

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// replacedBy returns the static member whose place a join takes: its instance id comes back without a member id,
// which says that the process was restarted.
func (g *group) replacedBy(q *kmsg.JoinGroupRequest) *member {
	if q.MemberID != "" || q.InstanceID == nil {
		return nil
	}
	return g.byInstance[*q.InstanceID]
}

// replaceStatic gives a static member's place to its new incarnation: the same assignment under a new member id.
// Whoever still uses the old id is fenced: what it has parked here at once, the rest with its next request. The group
// rebalances only if it must:
//
//	Stable, same protocol      no rebalance; answered when the new id is stored
//	Stable, another protocol   rebalance
//	Completing                 rebalance: the leader may be assigning to the old id right now (KAFKA-9801)
//	Preparing                  the new incarnation is one that has joined
func (m *Machine) replaceStatic(g *group, mb *member, r Request, q *kmsg.JoinGroupRequest) {
	previousLeader := g.leader
	m.fence(g, mb)
	m.takeOver(g, mb, r, q)
	m.parkJoin(g, mb, r, q)
	switch g.state {
	case stable:
		if g.selectProtocol() == g.protocol {
			m.storeReplacement(g, mb, previousLeader)
			return
		}
		m.storeRename(g, mb)
		m.prepareRebalance(g)
	case completingRebalance:
		m.storeRename(g, mb)
		m.prepareRebalance(g)
	case preparingRebalance:
		m.storeRename(g, mb)
		m.maybeCompleteJoin(g)
	}
}

// fence answers what the old incarnation has parked.
func (m *Machine) fence(g *group, mb *member) {
	if mb.join.waiting {
		m.answerJoin(g, mb, joinRefused(mb.id, mb.join.version, kerr.FencedInstanceID))
	}
	if mb.sync.waiting {
		m.reply(mb.sync.id, syncRefused(mb.sync.version, kerr.FencedInstanceID))
		mb.sync = parked{}
	}
}

// takeOver puts the new incarnation in the old one's place.
func (m *Machine) takeOver(g *group, mb *member, r Request, q *kmsg.JoinGroupRequest) {
	if mb.storing == 0 {
		mb.stored = mb.identity()
	}
	previousSession := mb.sessionTimeout
	g.rename(mb, m.newMemberID(*mb.instanceID))
	g.setProtocols(mb, q.Protocols)
	mb.sessionTimeout, mb.rebalanceTimeout = millis(q.SessionTimeoutMillis), millis(q.RebalanceTimeoutMillis)
	if m.holds(replacementRefreshesClient) {
		mb.clientID, mb.clientHost = r.ClientID, r.Host
	}
	if len(g.members) == 1 {
		g.protocolType = q.ProtocolType
	}
	if mb.owesSync && !m.holds(replacementMovesPendingSync) {
		mb.owesSync, g.ghostOwes = false, true
	}
	mb.isNew = false
	mb.swaps++
	session := previousSession
	if m.holds(replacementSessionAtOnce) {
		session = g.session(mb)
	}
	m.arm(&mb.session, session)
}

// replacementStored waits for the record of a replacement.
type replacementStored struct {
	group          *group
	member         *member
	swap           uint64   // which replacement
	identity       identity // what it made of the member
	request        parked
	previousLeader string
}

func (m *Machine) storeReplacement(g *group, mb *member, previousLeader string) {
	mb.storing++
	m.storeImage(g, g.snapshot(nil), &replacementStored{g, mb, mb.swaps, mb.identity(), mb.join, previousLeader})
}

// appended answers the new incarnation, or takes the replacement back: the identity that was stored last holds again.
// It is not taken back if a newer replacement has come meanwhile, or if a rebalance has answered the new incarnation.
func (c *replacementStored) appended(m *Machine, err *kerr.Error) {
	g, mb := c.group, c.member
	mb.storing--
	waits := mb.join.waiting && mb.join.id == c.request.id
	if err == nil {
		mb.stored = c.identity
		if waits {
			m.answerJoin(g, mb, c.answer(g))
			if mb.session.index == notQueued { // it ended while the record was on its way
				m.heard(mb)
			}
		}
		return
	}
	if waits {
		m.answerJoin(g, mb, c.refused(g, storeError(err)))
		m.restore(g, mb)
	}
}

// answer tells the new incarnation that it is in the present generation. From version 9 on a leader is told to skip
// the assignment (KIP-814); before, it must not take itself for the leader, or it would assign anew: it is told its
// old id.
func (c *replacementStored) answer(g *group) *kmsg.JoinGroupResponse {
	resp := g.joined(c.member)
	if c.request.version >= 9 {
		resp.SkipAssignment = g.leader == c.member.id
		return resp
	}
	resp.LeaderID = c.previousLeader
	resp.Members = nil
	return resp
}

func (c *replacementStored) refused(g *group, err *kerr.Error) *kmsg.JoinGroupResponse {
	resp := g.joined(c.member)
	resp.ErrorCode = err.Code
	resp.LeaderID = c.previousLeader
	resp.MemberID = ""
	resp.Members = nil
	return resp
}

// restore brings the identity back that was stored last.
func (m *Machine) restore(g *group, mb *member) {
	was := mb.stored
	g.rename(mb, was.id)
	g.setProtocols(mb, was.protocols)
	mb.clientID, mb.clientHost = was.clientID, was.clientHost
	mb.sessionTimeout, mb.rebalanceTimeout = was.sessionTimeout, was.rebalanceTimeout
	g.image = renamed(g.image, mb)
	m.arm(&mb.session, g.session(mb))
}

// storeRename stores only the new id of a replacement during a rebalance. The rest of the record stays that of the
// last complete generation, which is what a failover goes back to.
func (m *Machine) storeRename(g *group, mb *member) {
	if !m.holds(everyReplacementIsStored) {
		return
	}
	if image := renamed(g.image, mb); image != g.image {
		g.renames++
		m.storeImage(g, image, renameStored{g})
	}
}

// renameStored waits for the record of a new id. The rebalance does not complete before: its answer would hand out an id
// that a failover does not know, and whose holder it would fence.
type renameStored struct{ group *group }

// appended lets the rebalance go on, also if the record could not be stored: the next record of the group repairs it.
func (c renameStored) appended(m *Machine, _ *kerr.Error) {
	g := c.group
	g.renames--
	if g.renames == 0 && g.overdue && g.state == preparingRebalance {
		m.completeJoin(g)
	}
}

// storeRemovals stores that static members are gone while others remain, be it only a handed out id or a newcomer: without
// the record they would be back after a failover and hold their partitions for a whole session. It reports whether there
// was anything to store; if not, then is not called.
func (m *Machine) storeRemovals(g *group, then continuation) bool {
	if !m.holds(staticRemovalIsStored) || len(g.members)+len(g.pending)+len(g.newcomers) == 0 {
		return false // a group that nobody is left in becomes Empty now, which is stored anyway
	}
	image := withoutGone(g.image, g)
	if image == g.image {
		return false
	}
	m.storeImage(g, image, then)
	return true
}

// validInstanceID is the check that Kafka's own client makes before it connects.
func validInstanceID(id string) bool {
	if id == "" || len(id) > 249 || id == "." || id == ".." {
		return false
	}
	for i := 0; i < len(id); i++ {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
