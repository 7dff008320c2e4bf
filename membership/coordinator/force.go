package coordinator

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// force is a forced rebalance under way: the one rebalance whose deadline removes static members too, so that what has
// become of the group is settled within one generation.
type force struct {
	id     uint64
	before int32    // generation
	static []string // instance ids that were in the group, sorted
}

// onForceRebalance begins the rebalance or says why not.
func (m *Machine) onForceRebalance(ev ForceRebalance) {
	g, err, reason := m.checkForce(ev.Group)
	if err != nil {
		m.forced(&Forced{ID: ev.ID, Err: err, Reason: reason})
		return
	}
	g.force = &force{id: ev.ID, before: g.generation, static: g.instanceIDs()}
	deadline := g.rebalanceTimeout()
	if ev.Deadline > 0 {
		deadline = min(deadline, ev.Deadline)
	}
	m.prepareRebalance(g)
	if g.state == preparingRebalance {
		m.cancel(&g.join)
		m.arm(&g.join, deadline)
	}
}

// checkForce refuses what the drafts wanted refused: a group that rebalances already, and one with dynamic members,
// whose absence a deadline ends anyway.
func (m *Machine) checkForce(id string) (*group, *kerr.Error, string) {
	if id == "" {
		return nil, kerr.InvalidGroupID, "the group id is empty"
	}
	g, err := m.existing(id)
	switch {
	case err == kerr.GroupIDNotFound:
		return nil, err, "there is no such group"
	case err != nil:
		return nil, err, "the group's partition is not served now"
	case g.state == preparingRebalance, g.state == completingRebalance:
		return nil, kerr.RebalanceInProgress, "the group is rebalancing already: " + g.state.String()
	}
	for _, mb := range g.members {
		if !mb.static() {
			return nil, kerr.InvalidRequest, "the group has dynamic members, the first is " + mb.id
		}
	}
	for id := range g.pending {
		return nil, kerr.InvalidRequest, "the group has dynamic members, one is about to join as " + id
	}
	if len(g.members) == 0 {
		return nil, kerr.GroupIDNotFound, "the group has no members"
	}
	return g, nil, ""
}

func (g *group) instanceIDs() []string {
	var ids []string
	for _, mb := range g.members {
		if mb.static() {
			ids = append(ids, *mb.instanceID)
		}
	}
	slices.Sort(ids)
	return ids
}

// dropAbsentForced removes who did not come to a forced rebalance.
func (m *Machine) dropAbsentForced(g *group) {
	for _, mb := range slices.Clone(g.members) {
		if !mb.join.waiting {
			m.removeMember(g, mb)
		}
	}
	m.storeRemovals(g, storedNothing{})
}

// tellForced reports a forced rebalance whose generation has begun.
func (m *Machine) tellForced(g *group) {
	f := g.force
	g.force = nil
	result := &Forced{ID: f.id, Before: f.before, After: g.generation}
	for _, id := range f.static {
		if g.byInstance[id] != nil {
			result.Kept = append(result.Kept, id)
		} else {
			result.Removed = append(result.Removed, id)
		}
	}
	m.forced(result)
}

func (m *Machine) forced(result *Forced) { m.actions = append(m.actions, result) }
