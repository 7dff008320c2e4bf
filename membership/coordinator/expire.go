package coordinator

// expireOffsets deletes offsets that nobody needs any more, and empty groups that have none left. What counts as
// unused, as in Kafka:
//
//	group without a protocol type   (it only commits)    since the commit
//	Empty                                                since the group became empty (since the commit, if an old record
//	                                                     of the group does not say when)
//	Stable consumer group           topics that nobody subscribes to, since the commit
//	any other                                            nothing expires
func (m *Machine) expireOffsets() {
	m.arm(&m.expiry, m.cfg.ExpiryInterval)
	for _, g := range m.sortedGroups() {
		if g.state == dead || len(g.inFlight) > 0 {
			continue
		}
		if g.state == empty && len(g.open) == 0 && m.allExpired(g) {
			m.become(g, dead)
			m.deleteGroup(g, &groupDeleted{group: g})
			continue
		}
		m.deleteOffsets(g, func(tp topicPartition) bool { return m.expired(g, tp) && !g.unstable(tp) }, nil)
	}
}

func (m *Machine) allExpired(g *group) bool {
	for tp := range g.offsets {
		if !m.expired(g, tp) {
			return false
		}
	}
	return true
}

func (m *Machine) expired(g *group, tp topicPartition) bool {
	o, ok := g.offsets[tp]
	since := o.committed
	switch {
	case !ok:
		return false
	case g.protocolType == "":
	case g.state == empty && g.stateSince >= 0:
		since = g.stateSince
	case g.state == empty:
	case g.state == stable && g.protocolType == consumerProtocol && !g.subscribes(tp.topic):
	default:
		return false
	}
	if o.expires != noExpiry {
		return m.wall >= o.expires
	}
	return m.wall-since >= m.cfg.OffsetsRetention.Milliseconds()
}
