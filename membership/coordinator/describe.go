package coordinator

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// groupOperations are the operations that there are on a group (read, delete, describe, and describe and alter its
// configs), as the bits that DescribeGroups reports: without access control everybody may do all of them.
const groupOperations = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11

// onDescribe serves DescribeGroups (versions 0 to 6).
func (m *Machine) onDescribe(r Request, q *kmsg.DescribeGroupsRequest) {
	resp := kmsg.NewPtrDescribeGroupsResponse()
	resp.Version = q.Version
	for _, id := range q.Groups {
		answer := m.describe(id, q.Version)
		if q.IncludeAuthorizedOperations && answer.ErrorCode == 0 {
			answer.AuthorizedOperations = groupOperations
		}
		resp.Groups = append(resp.Groups, answer)
	}
	m.reply(r.ID, resp)
}

// describe describes one group. A group that does not exist is Dead, which is an error only from version 6 on (KIP-1043).
func (m *Machine) describe(id string, version int16) kmsg.DescribeGroupsResponseGroup {
	answer := kmsg.NewDescribeGroupsResponseGroup()
	answer.Group = id
	g, err := m.lookup(id)
	switch {
	case err != nil:
		answer.ErrorCode = err.Code
		return answer
	case g == nil || g.state == dead:
		answer.State = dead.String()
		if version >= 6 {
			answer.ErrorCode = kerr.GroupIDNotFound.Code
			answer.ErrorMessage = kmsg.StringPtr(fmt.Sprintf("Group %s not found.", id))
		}
		return answer
	}
	answer.State = g.state.String()
	answer.ProtocolType = g.protocolType
	if g.state == stable {
		answer.Protocol = g.protocol
	}
	for _, mb := range g.members {
		e := kmsg.NewDescribeGroupsResponseGroupMember()
		e.MemberID, e.InstanceID, e.ClientID, e.ClientHost = mb.id, mb.instanceID, mb.clientID, mb.clientHost
		if g.state == stable {
			e.ProtocolMetadata = mb.metadata(g.protocol)
		}
		if g.state == stable || !m.holds(describeOnlyStableAssignments) {
			e.MemberAssignment = mb.assignment
		}
		answer.Members = append(answer.Members, e)
	}
	return answer
}
