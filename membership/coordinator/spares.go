package coordinator

import (
	"cmp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// chooseSpares decides who gets work in the generation that begins ([Settings.TargetSize]): always the same members as
// long as they are there, whichever way they came.
func (g *group) chooseSpares() {
	target := g.settings.TargetSize
	if target == 0 || target >= len(g.members) {
		for _, mb := range g.members {
			mb.spare = false
		}
		return
	}
	order := slices.Clone(g.members)
	slices.SortStableFunc(order, func(a, b *member) int {
		switch {
		case a.static() && b.static():
			return cmp.Compare(*a.instanceID, *b.instanceID)
		case a.static():
			return -1
		case b.static():
			return 1
		}
		return 0
	})
	for i, mb := range order {
		mb.spare = i >= target
	}
}

// spares reports whether a member is there only to take over.
func (g *group) spares() bool {
	return g.settings.TargetSize > 0 && slices.ContainsFunc(g.members, func(mb *member) bool { return mb.spare })
}

// session is how long a member may be silent now.
func (g *group) session(mb *member) time.Duration {
	if short := g.settings.SpareSession; short > 0 && mb.static() && !mb.spare && g.spares() {
		return min(short, mb.sessionTimeout)
	}
	return mb.sessionTimeout
}

// consumerProtocolType is the protocol type of consumers, whose assignments have a known format.
const consumerProtocolType = "consumer"

// idleAssignment is what a spare is assigned. Consumers expect at least an empty list.
func (g *group) idleAssignment() []byte {
	if g.protocolType != consumerProtocolType {
		return nil
	}
	idle := kmsg.NewConsumerMemberAssignment()
	return idle.AppendTo(nil)
}
