package coordinator

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// state is a group's state; the names are Kafka's, as ListGroups and DescribeGroups show them.
type state uint8

const (
	empty state = iota
	preparingRebalance
	completingRebalance
	stable
	dead
)

func (s state) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}[s]
}

// transitions lists from which states a state may be reached. Dead goes back to Empty only when storing the group's
// deletion failed.
var transitions = [...][]state{
	empty:               {preparingRebalance, dead},
	preparingRebalance:  {empty, completingRebalance, stable},
	completingRebalance: {preparingRebalance},
	stable:              {completingRebalance},
	dead:                {empty, preparingRebalance, completingRebalance, stable},
}

// group is one consumer group. Invariants, which every request may rely on between two steps:
//
//	G1  byInstance maps each instance id to the one member that holds it, and byID has the same members as members.
//	G2  leader is "" or the id of a member.
//	G3  parkedJoins counts the members whose join is waiting; only Preparing has any, except for a static member
//	    whose replacement is being stored. Newcomers, whose joins wait in Stable, are not members.
//	G4  supporters[p] is the number of members that offer protocol p.
//	G5  generation grows by one whenever a join completes and never otherwise.
type group struct {
	id           string
	partition    int32 // of __consumer_offsets
	state        state
	stateSince   int64 // Unix milliseconds; negative: an old record did not say
	generation   int32
	protocolType string   // "": none yet, the group only has offsets
	protocol     string   // selected for this generation; "": none
	leader       string   // member id
	topics       []string // that the members subscribed to when the generation began, sorted; see readTopics
	topicsKnown  bool

	members     []*member // in the order in which they joined
	byID        map[string]*member
	byInstance  map[string]*member
	pending     map[string]*timer // member ids that were handed out (MEMBER_ID_REQUIRED) and did not come back yet
	supporters  map[string]int
	parkedJoins int

	initial   bool          // the rebalance under way is the first of an empty group
	delay     time.Duration // of the present round of the initial rebalance
	remaining time.Duration // what the initial rebalance may still be prolonged by
	grown     bool          // a member arrived in the present round
	join      timer         // join timer, or initial timer
	absence   timer         // when all missing static members count as absent
	syncs     timer         // sync timer
	ghostOwes bool          // a member id that was replaced still counts as owing a Sync
	renames   int           // new ids of static members whose records are not acknowledged yet
	overdue   bool          // the rebalance would be complete but for them

	settings       *settings // never nil
	newcomers      []newcomer
	newcomersSince instant
	expansion      timer  // the newcomers have waited enough
	registration   timer  // the offline members have been offline for long enough
	force          *force // the rebalance under way was forced; nil: it was not

	image *kmsg.GroupMetadataValue // what the log says of the group, the appends under way included; nil: nothing. Never modified

	offsets  map[topicPartition]offset
	open     map[int64]*openOffsets // producer id -> offsets pending on its transaction
	inFlight map[topicPartition]inFlight
}

func (m *Machine) newGroup(id string, partition int32) *group {
	g := &group{
		id:         id,
		partition:  partition,
		stateSince: m.wall,
		byID:       make(map[string]*member),
		byInstance: make(map[string]*member),
		pending:    make(map[string]*timer),
		supporters: make(map[string]int),
		offsets:    make(map[topicPartition]offset),
		open:       make(map[int64]*openOffsets),
		inFlight:   make(map[topicPartition]inFlight),
	}
	g.join = timer{kind: joinTimer, group: g, index: notQueued}
	g.settings = m.settingsOf(id)
	g.expansion = timer{kind: expansionTimer, group: g, index: notQueued}
	g.registration = timer{kind: registrationTimer, group: g, index: notQueued}
	g.absence = timer{kind: absenceTimer, group: g, index: notQueued}
	g.syncs = timer{kind: syncTimer, group: g, index: notQueued}
	m.groups[id] = g
	return g
}

// become is the only way to another state.
func (m *Machine) become(g *group, next state) {
	if !slices.Contains(transitions[next], g.state) {
		panic(fmt.Sprintf("group %s cannot go from %s to %s", g.id, g.state, next))
	}
	g.state = next
	g.stateSince = m.wall
}

// validate is the identity check that every request of a known member passes, in Kafka's order: an instance id that
// nobody holds is unknown, one that another member id holds is fenced.
func (g *group) validate(memberID string, instanceID *string) (*member, *kerr.Error) {
	if instanceID != nil {
		holder := g.byInstance[*instanceID]
		switch {
		case holder == nil:
			return nil, kerr.UnknownMemberID
		case holder.id != memberID:
			return nil, kerr.FencedInstanceID
		}
	}
	mb := g.byID[memberID]
	if mb == nil {
		return nil, kerr.UnknownMemberID
	}
	return mb, nil
}

// add puts a member into the group. The first one determines the protocol type, and leads.
func (g *group) add(mb *member, protocolType string) {
	if len(g.members) == 0 {
		g.protocolType = protocolType
	}
	if g.leader == "" {
		g.leader = mb.id
	}
	g.members = append(g.members, mb)
	g.byID[mb.id] = mb
	if mb.static() {
		g.byInstance[*mb.instanceID] = mb
	}
	g.countSupport(mb, 1)
}

// removeMember takes a member out of the group. Whoever joined first leads next if it led.
func (m *Machine) removeMember(g *group, mb *member) {
	m.cancel(&mb.session)
	g.members = slices.DeleteFunc(g.members, func(other *member) bool { return other == mb })
	delete(g.byID, mb.id)
	if mb.static() {
		delete(g.byInstance, *mb.instanceID)
	}
	g.countSupport(mb, -1)
	if mb.join.waiting {
		g.parkedJoins--
	}
	if g.leader == mb.id {
		g.leader = ""
		if len(g.members) > 0 {
			g.leader = g.members[0].id
		}
	}
}

// rename gives a member another id, as a replacement does.
func (g *group) rename(mb *member, id string) {
	delete(g.byID, mb.id)
	if g.leader == mb.id {
		g.leader = id
	}
	mb.id = id
	g.byID[id] = mb
}

// setProtocols replaces what a member offers.
func (g *group) setProtocols(mb *member, protocols []kmsg.JoinGroupRequestProtocol) {
	g.countSupport(mb, -1)
	mb.protocols = protocols
	g.countSupport(mb, 1)
}

func (g *group) countSupport(mb *member, by int) {
	for i, p := range mb.protocols {
		if slices.ContainsFunc(mb.protocols[:i], func(q kmsg.JoinGroupRequestProtocol) bool { return q.Name == p.Name }) {
			continue
		}
		g.supporters[p.Name] += by
		if g.supporters[p.Name] == 0 {
			delete(g.supporters, p.Name)
		}
	}
}

// supports reports whether a joining member has the group's protocol type and a protocol in common with all members.
// replaced, if not nil, is a member that does not count.
func (g *group) supports(protocolType string, protocols []kmsg.JoinGroupRequestProtocol, replaced *member) bool {
	others := len(g.members)
	if replaced != nil {
		others--
	}
	if g.state == empty || replaced != nil && others == 0 {
		return protocolType != "" && len(protocols) > 0
	}
	if protocolType != g.protocolType {
		return false
	}
	return slices.ContainsFunc(protocols, func(p kmsg.JoinGroupRequestProtocol) bool {
		supporters := g.supporters[p.Name]
		if replaced != nil && slices.ContainsFunc(replaced.protocols, func(r kmsg.JoinGroupRequestProtocol) bool { return r.Name == p.Name }) {
			supporters--
		}
		return supporters == others
	})
}

// selectProtocol lets every member vote for its favourite among the protocols that all support. Among equally voted
// ones the present protocol wins, then the leader's order decides (Kafka leaves ties to its hash order).
func (g *group) selectProtocol() string {
	votes := make(map[string]int)
	most := 0
	for _, mb := range g.members {
		v := mb.vote(g)
		votes[v]++
		most = max(most, votes[v])
	}
	if votes[g.protocol] == most {
		return g.protocol
	}
	for _, p := range g.byID[g.leader].protocols {
		if votes[p.Name] == most {
			return p.Name
		}
	}
	return ""
}

// rebalanceTimeout is the longest of all members, absent ones included. Clients may send nonsense; with less than a
// millisecond a group that waits for its absent members would do nothing else.
func (g *group) rebalanceTimeout() time.Duration {
	longest := time.Millisecond
	for _, mb := range g.members {
		longest = max(longest, mb.rebalanceTimeout)
	}
	return longest
}

// dropPending forgets a member id that was handed out, and reports whether there was such an id.
func (g *group) dropPending(m *Machine, id string) bool {
	t, ok := g.pending[id]
	if ok {
		m.cancel(t)
		delete(g.pending, id)
	}
	return ok
}

// owing reports whether a member did not sync since the last join completed.
func (g *group) owing() bool {
	return g.ghostOwes || slices.ContainsFunc(g.members, func(mb *member) bool { return mb.owesSync })
}
