package coordinator

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// onDelete serves DeleteGroups (versions 0 to 3): empty groups go, with their offsets. The answer waits for the
// tombstones of all of them.
func (m *Machine) onDelete(r Request, q *kmsg.DeleteGroupsRequest) {
	resp := kmsg.NewPtrDeleteGroupsResponse()
	resp.Version = q.Version
	batch := &deletion{request: r.ID, resp: resp}
	var groups []*group
	for i, id := range q.Groups {
		answer := kmsg.NewDeleteGroupsResponseGroup()
		answer.Group = id
		g, err := m.deletable(id)
		answer.ErrorCode = code(err)
		resp.Groups = append(resp.Groups, answer)
		if err == nil {
			m.become(g, dead)
			groups = append(groups, g)
			batch.rows = append(batch.rows, i)
		}
	}
	batch.waits = len(groups)
	for i, g := range groups {
		m.deleteGroup(g, &groupDeleted{group: g, batch: batch, row: batch.rows[i]})
	}
	if len(groups) == 0 {
		m.reply(r.ID, resp)
	}
}

func (m *Machine) deletable(id string) (*group, *kerr.Error) {
	g, err := m.existing(id)
	if err == nil && g.state != empty {
		err = kerr.NonEmptyGroup
	}
	return g, err
}

// existing finds a group for which it is an error not to exist.
func (m *Machine) existing(id string) (*group, *kerr.Error) {
	g, err := m.lookup(id)
	if err == nil && (g == nil || g.state == dead) {
		err = kerr.GroupIDNotFound
	}
	return g, err
}

// deletion is one DeleteGroups request under way.
type deletion struct {
	request uint64
	resp    *kmsg.DeleteGroupsResponse
	rows    []int // of the answer, one a group
	waits   int   // for so many groups
}

// groupDeleted waits for the tombstones of one group, which is Dead until then.
type groupDeleted struct {
	group *group
	batch *deletion // nil: expired, not asked for
	row   int
}

// deleteGroup emits the tombstones of a group that has become Dead and of its offsets.
func (m *Machine) deleteGroup(g *group, then *groupDeleted) {
	var records []Record
	for _, tp := range g.storedOffsets() {
		records = append(records, offsetTombstone(g.id, tp))
	}
	records = append(records, Record{Key: groupKey(g.id)})
	m.append(g.partition, records, nil, then)
}

// appended forgets the group, or brings it back if its deletion could not be stored.
func (c *groupDeleted) appended(m *Machine, err *kerr.Error) {
	if err == nil {
		m.forgetGroup(c.group)
	} else if m.groups[c.group.id] == c.group {
		m.become(c.group, empty)
	}
	if c.batch == nil {
		return
	}
	c.batch.resp.Groups[c.row].ErrorCode = code(storeError(err))
	if c.batch.waits--; c.batch.waits == 0 {
		m.reply(c.batch.request, c.batch.resp)
	}
}

// forgetGroup takes a Dead group and everything that refers to it out of the machine.
func (m *Machine) forgetGroup(g *group) {
	m.cancel(&g.join)
	m.cancel(&g.absence)
	m.cancel(&g.syncs)
	m.cancel(&g.expansion)
	m.cancel(&g.registration)
	for _, mb := range g.members {
		m.cancel(&mb.session)
	}
	for _, t := range g.pending {
		m.cancel(t)
	}
	for producerID := range g.open {
		m.closeTxn(g, producerID)
	}
	if m.groups[g.id] == g {
		delete(m.groups, g.id)
	}
}
