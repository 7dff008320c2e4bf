package coordinator

import (
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// groupType is the type of all groups here, as ListGroups names and filters it (KIP-848).
const groupType = "classic"

// onList serves ListGroups (versions 0 to 5), with its filters by state and type, in the order of the group ids.
func (m *Machine) onList(r Request, q *kmsg.ListGroupsRequest) {
	resp := kmsg.NewPtrListGroupsResponse()
	resp.Version = q.Version
	if slices.Contains(m.partitions, loading) {
		resp.ErrorCode = kerr.CoordinatorLoadInProgress.Code
		m.reply(r.ID, resp)
		return
	}
	for _, g := range m.sortedGroups() {
		if g.state == dead || !allows(q.StatesFilter, g.state.String()) || !allows(q.TypesFilter, groupType) {
			continue
		}
		e := kmsg.NewListGroupsResponseGroup()
		e.Group, e.ProtocolType, e.GroupState, e.GroupType = g.id, g.protocolType, g.state.String(), groupType
		resp.Groups = append(resp.Groups, e)
	}
	m.reply(r.ID, resp)
}

// allows reports whether a filter, which is not sensitive to case, lets a value through; an empty one lets all.
func allows(filter []string, value string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, value) })
}

// sortedGroups gives work on all groups the same order in every run.
func (m *Machine) sortedGroups() []*group {
	return slices.SortedFunc(maps.Values(m.groups), func(a, b *group) int { return strings.Compare(a.id, b.id) })
}
