package coordinator

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A newcomer is a new static member whose JoinGroup waits while the group stays Stable ([Settings.ExpansionTimeout],
// [Settings.Expected]). It becomes a member when the group rebalances, for whatever reason, so it is in none of the
// group's maps before; no session of it runs, because its request is here.
//
//	newcomer ──▶ waits ──▶ the timeout, the last expected one, or any other rebalance ──▶ member, in Preparing
//	               │
//	               └─ joins again without an id: takes its own place

// holdsNewcomer reports whether a new static member has to wait.
func (g *group) holdsNewcomer(instanceID string) bool {
	return g.state == stable && g.newcomerWait(instanceID) > 0
}

// newcomerWait is how long a newcomer waits at most if it is the first: 0 if it need not.
func (g *group) newcomerWait(instanceID string) time.Duration {
	switch {
	case g.settings.ExpansionTimeout > 0:
		return g.settings.ExpansionTimeout
	case g.settings.expects(instanceID):
		return g.rebalanceTimeout()
	}
	return 0
}

// addNewcomer parks a new static member's join beside the group.
func (m *Machine) addNewcomer(g *group, r Request, q *kmsg.JoinGroupRequest) {
	if len(g.newcomers) == 0 {
		g.newcomersSince = m.now
	}
	mb := m.newMember(g, m.newMemberID(*q.InstanceID), r, q)
	mb.join = parked{r.ID, q.Version, true}
	g.newcomers = append(g.newcomers, newcomer{mb, q.ProtocolType})
	m.newcomersDue(g)
}

type newcomer struct {
	*member
	protocolType string
}

// newcomer finds who waits under an instance id.
func (g *group) newcomer(instanceID *string) (at int, ok bool) {
	if instanceID == nil {
		return 0, false
	}
	at = slices.IndexFunc(g.newcomers, func(n newcomer) bool { return *n.instanceID == *instanceID })
	return at, at >= 0
}

// replaceNewcomer lets the newest of two joins of one instance wait: the older one's client gave up, or is another
// process that is fenced.
func (m *Machine) replaceNewcomer(g *group, at int, r Request, q *kmsg.JoinGroupRequest) {
	old := g.newcomers[at]
	m.reply(old.join.id, joinRefused(old.id, old.join.version, kerr.FencedInstanceID))
	mb := m.newMember(g, m.newMemberID(*q.InstanceID), r, q)
	mb.join = parked{r.ID, q.Version, true}
	g.newcomers[at] = newcomer{mb, q.ProtocolType}
}

// dropNewcomer takes back a join that waits.
func (m *Machine) dropNewcomer(g *group, at int, err *kerr.Error) {
	n := g.newcomers[at]
	g.newcomers = slices.Delete(g.newcomers, at, at+1)
	m.reply(n.join.id, joinRefused("", n.join.version, err))
}

// newcomersDue rebalances if the newcomers have waited enough, and otherwise looks again when they have.
func (m *Machine) newcomersDue(g *group) {
	if len(g.newcomers) == 0 {
		m.cancel(&g.expansion)
		return
	}
	var wait time.Duration
	for _, n := range g.newcomers {
		own := g.newcomerWait(*n.instanceID)
		if own == 0 { // the setting that held it is gone
			wait = 0
			break
		}
		wait = max(wait, own)
	}
	due := g.newcomersSince + instant(wait)
	if due <= m.now || g.lastExpectedCame() {
		m.prepareRebalance(g)
		return
	}
	m.cancel(&g.expansion)
	m.timers.arm(&g.expansion, due)
}

// lastExpectedCame reports whether nobody on the list of expected ids is missing and some of them wait.
func (g *group) lastExpectedCame() bool {
	wait := false
	for _, id := range g.settings.Expected {
		_, waits := g.newcomer(&id)
		if !waits && g.byInstance[id] == nil {
			return false
		}
		wait = wait || waits
	}
	return wait
}

// admitNewcomers makes members of those who wait, as a rebalance begins. They were checked against the members, but not
// against each other.
func (m *Machine) admitNewcomers(g *group) {
	m.cancel(&g.expansion)
	waiting := g.newcomers
	g.newcomers = nil
	for _, n := range waiting {
		if !g.supports(n.protocolType, n.protocols, nil) {
			m.reply(n.join.id, joinRefused(n.id, n.join.version, kerr.InconsistentGroupProtocol))
			continue
		}
		n.lastContact = m.now
		g.add(n.member, n.protocolType)
		g.parkedJoins++
		m.arm(&n.session, m.cfg.NewMemberJoinTimeout)
	}
}
