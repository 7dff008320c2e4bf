package coordinator

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// onSync serves SyncGroup (versions 0 to 5).
func (m *Machine) onSync(r Request, q *kmsg.SyncGroupRequest) {
	g, mb, err := m.checkSync(q)
	if err != nil {
		m.reply(r.ID, syncRefused(q.Version, err))
		return
	}
	if g.state == stable {
		m.synced(g, mb)
		m.returned(mb)
		if m.holds(syncRestartsSession) {
			m.heard(mb)
		}
		m.reply(r.ID, g.synced(mb, q.Version, nil))
		return
	}
	m.parkSync(mb, r, q)
	m.synced(g, mb)
	if g.leader == mb.id {
		m.storeAssignment(g, q)
	}
}

// checkSync makes the checks of a Sync in Kafka's order. Without an error the group is Completing or Stable.
func (m *Machine) checkSync(q *kmsg.SyncGroupRequest) (*group, *member, *kerr.Error) {
	if q.Version >= 5 && (q.ProtocolType == nil || q.Protocol == nil) {
		return nil, nil, kerr.InconsistentGroupProtocol
	}
	if q.Group == "" {
		return nil, nil, kerr.InvalidGroupID
	}
	g, err := m.lookup(q.Group)
	switch {
	case err == kerr.CoordinatorLoadInProgress && m.holds(syncWhileLoadingRebalances):
		return nil, nil, kerr.RebalanceInProgress
	case err != nil:
		return nil, nil, err
	case g == nil || g.state == empty:
		return nil, nil, kerr.UnknownMemberID
	case g.state == dead:
		return nil, nil, kerr.CoordinatorNotAvailable
	}
	mb, err := g.validate(q.MemberID, q.InstanceID)
	switch {
	case err != nil:
		return nil, nil, err
	case q.Generation != g.generation:
		return nil, nil, kerr.IllegalGeneration
	case differs(q.ProtocolType, g.protocolType), differs(q.Protocol, g.protocol):
		return nil, nil, kerr.InconsistentGroupProtocol
	case g.state == preparingRebalance:
		return nil, nil, kerr.RebalanceInProgress
	}
	return g, mb, nil
}

// differs reports whether both sides name something and it is not the same.
func differs(given *string, present string) bool {
	return given != nil && present != "" && *given != present
}

// parkSync lets a member's Sync wait for the assignment. One that waits already was given up by its client.
func (m *Machine) parkSync(mb *member, r Request, q *kmsg.SyncGroupRequest) {
	if mb.sync.waiting && m.holds(repeatedRequestIsAnswered) {
		m.reply(mb.sync.id, syncRefused(mb.sync.version, kerr.RebalanceInProgress))
	}
	mb.sync = parked{r.ID, q.Version, true}
	mb.lastContact, mb.offline = m.now, false
}

// assignmentStored waits for the record of a generation's assignment.
type assignmentStored struct {
	group      *group
	generation int32
	assignment map[string][]byte
	previous   *kmsg.GroupMetadataValue // the image before
	image      *kmsg.GroupMetadataValue
}

// storeAssignment stores what the leader assigned; members it left out get nothing.
func (m *Machine) storeAssignment(g *group, q *kmsg.SyncGroupRequest) {
	assignment := make(map[string][]byte, len(q.GroupAssignment))
	for _, a := range q.GroupAssignment {
		assignment[a.MemberID] = a.MemberAssignment
	}
	for _, mb := range g.members {
		if mb.spare {
			assignment[mb.id] = g.idleAssignment()
		}
	}
	previous := g.image
	image := g.snapshot(assignment)
	m.storeImage(g, image, &assignmentStored{g, g.generation, assignment, previous, image})
}

// appended hands the assignment out, or begins another rebalance if it could not be stored. If the group has gone on
// meanwhile, the outcome does not matter any more.
func (c *assignmentStored) appended(m *Machine, err *kerr.Error) {
	g := c.group
	if err != nil && g.image == c.image {
		g.image = c.previous
	}
	if g.state != completingRebalance || g.generation != c.generation {
		return
	}
	if err != nil {
		m.resetAssignments(g, storeError(err))
		m.prepareRebalance(g)
		return
	}
	m.become(g, stable)
	for _, mb := range g.members {
		mb.assignment = c.assignment[mb.id]
		m.answerSync(g, mb, nil)
	}
}

// synced is the answer to a member's Sync.
func (g *group) synced(mb *member, version int16, err *kerr.Error) *kmsg.SyncGroupResponse {
	if err != nil {
		return syncRefused(version, err)
	}
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.Version = version
	resp.ProtocolType = nullable(g.protocolType)
	resp.Protocol = nullable(g.protocol)
	resp.MemberAssignment = mb.assignment
	return resp
}

func syncRefused(version int16, err *kerr.Error) *kmsg.SyncGroupResponse {
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.Version = version
	resp.ErrorCode = err.Code
	return resp
}
