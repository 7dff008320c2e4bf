package coordinator

// ruleMutants break one row of testdata/RULES.md each, or one promise of the drafts' settings.
var ruleMutants = []mutant{
	{"J3: session timeouts without an upper bound", "join.go", ` || session > m.cfg.MaxSessionTimeout`, ``},
	{"J5: a group that a wrong id creates", "join.go", `case g == nil && q.MemberID != "":`, `case g == nil && q.MemberID != "" && q.InstanceID == nil:`},
	{"J7: who is refused for lack of room stays", "join.go", `		m.removeByID(g, q.MemberID)
`, ``},
	{"J7: newcomers that do not count", "join.go", `len(g.members)+len(g.newcomers) <`, `len(g.members) <`},
	{"J9: a group without members that has no type any more", "group.go", `replaced != nil && others == 0`, `others == 0`},
	{"K9: protocols whose order does not matter", "member.go", `if p.Name != mb.protocols[i].Name || !bytes.Equal(p.Metadata, mb.protocols[i].Metadata) {`,
		`if i >= 0 && !bytes.Equal(p.Metadata, mb.metadata(p.Name)) {`},
	{"X6: one code for all versions", "txn_offset_commit.go", `	case g == nil && q.Version >= 6:
		return nil, kerr.GroupIDNotFound
`, ``},
	{"K11: a rejoin that keeps the old timeouts", "join.go", `		mb.sessionTimeout, mb.rebalanceTimeout = millis(q.SessionTimeoutMillis), millis(q.RebalanceTimeoutMillis)
		m.parkJoin`, `		m.parkJoin`},
	{"N2: handed out ids for ever", "join.go", `	m.arm(t, millis(q.SessionTimeoutMillis))
`, ``},
	{"D16: instance ids of 250 characters", "static.go", `len(id) > 249`, `len(id) > 250`},
	{"R9: a replacement in Preparing that does not complete it", "static.go", `		m.storeRename(g, mb)
		m.maybeCompleteJoin(g)`, `		m.storeRename(g, mb)`},
	{"R15: a replacement taken back without its protocols", "static.go", `	g.setProtocols(mb, was.protocols)
`, ``},
	{"R15: a replacement taken back but not in the log", "static.go", `	g.image = renamed(g.image, mb)
`, ``},
	{"R16: a time-out told as such", "machine.go", `kerr.NotEnoughReplicas, kerr.RequestTimedOut:`, `kerr.NotEnoughReplicas:`},
	{"D12: an older replacement answered for the newer", "static.go", `mb.join.waiting && mb.join.id == c.request.id`, `mb.join.waiting`},
	{"R6: a session that ends while the record is on its way", "static.go", `			if mb.session.index == notQueued { // it ended while the record was on its way
				m.heard(mb)
			}
`, ``},
	{"D10a: a record that still names the leader who is gone", "record.go", `		changed.Leader = nil
`, ``},
	{"D10a: a removal by the session that is not stored", "timers.go", `	m.storeRemovals(g, storedNothing{})
`, ``},
	{"D10b: a rename that forgets the leader", "record.go", `			changed.Leader = nullable(mb.id)
`, ``},
	{"Y8: a Sync with another protocol type", "sync.go", `differs(q.ProtocolType, g.protocolType), `, ``},
	{"Y11: a Sync that does not pay the debt", "sync.go", `	m.parkSync(mb, r, q)
	m.synced(g, mb)`, `	m.parkSync(mb, r, q)`},
	{"Y12: a failed assignment that stays the image", "sync.go", `	if err != nil && g.image == c.image {
		g.image = c.previous
	}
`, ``},
	{"Y14: a Sync in Stable that does not pay the debt", "sync.go", `		m.synced(g, mb)
		m.returned(mb)`, `		m.returned(mb)`},
	{"H6: heartbeats of any generation", "heartbeat.go", `	case q.Generation != g.generation:
		return kerr.IllegalGeneration
`, ``},
	{"H8: a heartbeat in Preparing that is no sign of life", "heartbeat.go", `	m.heard(mb)
	if g.state == preparingRebalance {
		return kerr.RebalanceInProgress
	}
`, `	if g.state == preparingRebalance {
		return kerr.RebalanceInProgress
	}
	m.heard(mb)
`},
	{"L5: a handed out id that leaves Completing in silence", "leave.go", `g.state == preparingRebalance || !m.holds(pendingLeaveIsSilent)`,
		`g.state == preparingRebalance || g.state == stable && !m.holds(pendingLeaveIsSilent)`},
	{"L5: a handed out id that leaves an Empty group", "leave.go", `changed && g.state != empty`, `changed`},
	{"L7: an old client that is told nothing", "leave.go", `		resp.ErrorCode = resp.Members[0].ErrorCode
`, ``},
	{"T4: the first member's rebalance timeout", "group.go", `	for _, mb := range g.members {
		longest = max(longest, mb.rebalanceTimeout)
	}`, `	for _, mb := range g.members[:min(1, len(g.members))] {
		longest = max(longest, mb.rebalanceTimeout)
	}`},
	{"T8: Empty that is not stored", "rebalance.go", `		m.storeImage(g, g.snapshot(nil), storedNothing{})
`, ``},
	{"T10: no sync timer", "rebalance.go", `	m.arm(&g.syncs, g.rebalanceTimeout())
`, ``},
	{"T14: an expired id that still holds the rebalance up", "timers.go", `		m.membersExpired(g)
		return
	}
	if !mb.isNew`, `		return
	}
	if !mb.isNew`},
	{"C2: one code for all versions", "offset_commit.go", `	case g == nil && q.Version >= 9:
		return nil, kerr.GroupIDNotFound
`, ``},
	{"C4: ids that matter to an Empty group", "offset_commit.go", `	case g.state == empty && q.Generation < 0:
		return g, nil // whatever`, `	case g.state == empty && q.Generation < 0 && q.InstanceID == nil:
		return g, nil // whatever`},
	{"C10: a commit that is no sign of life", "offset_commit.go", `	m.heard(mb)
`, `	_ = mb
`},
	{"C12: topic ids of topics that were deleted", "offsets.go", `func (m *Machine) onTopicDeleted(ev TopicDeleted) {
	delete(m.topicNames, m.topics[ev.Topic].id)
`, `func (m *Machine) onTopicDeleted(ev TopicDeleted) {
`},
	{"C12: topic ids of topics that were created anew", "offsets.go", `func (m *Machine) onTopicChanged(ev TopicChanged) {
	delete(m.topicNames, m.topics[ev.Topic].id)
`, `func (m *Machine) onTopicChanged(ev TopicChanged) {
`},
	{"X1: a transaction without a member refused", "txn_offset_commit.go", `q.Generation < 0, anonymous:`, `q.Generation < 0, anonymous && false:`},
	{"X7: old producers told that it is loading", "txn_offset_commit.go", `kerr.CoordinatorLoadInProgress && q.Version < 2:`, `kerr.CoordinatorLoadInProgress && q.Version < 1:`},
	{"X9: a marker of an older epoch", "offsets.go", `open == nil || open.epoch > ev.ProducerEpoch`, `open == nil`},
	{"F1: an error that the first versions do not see", "offset_fetch.go", `if q.Version < 2 && answer.ErrorCode != 0 {`, `if q.Version < 1 && answer.ErrorCode != 0 {`},
	{"F5: no 88 when everything is asked for", "offset_fetch.go", `		last.Partitions = append(last.Partitions, g.fetched(tp, stable))`, `		last.Partitions = append(last.Partitions, g.fetched(tp, false))`},
	{"E2: an old record that is as young as the load", "expire.go", `g.state == empty && g.stateSince >= 0:
		since = g.stateSince
	case g.state == empty:`, `g.state == empty:
		since = max(g.stateSince, m.wall)`},
	{"E3: a live group that keeps every offset", "expire.go", `	case g.state == stable && g.protocolType == consumerProtocol && !g.subscribes(tp.topic):
`, ``},
	{"E4: a live group of another type that loses its offsets", "expire.go", `g.protocolType == consumerProtocol && !g`, `!g`},
	{"E6: a retention of its own that does not count", "expire.go", `	if o.expires != noExpiry {
		return m.wall >= o.expires
	}
`, ``},
	{"E7: a group that expires under a transaction", "expire.go", ` && len(g.open) == 0 && m`, ` && m`},
	{"G2: the newest version told nothing", "describe.go", `if version >= 6 {`, `if version >= 7 {`},
	{"G5: filters that care about case", "list.go", `strings.EqualFold(f, value)`, `f == value`},
	{"G8: deleted without its offsets", "delete.go", `	for _, tp := range g.storedOffsets() {
		records = append(records, offsetTombstone(g.id, tp))
	}
`, ``},
	{"G8: deleted, and brought back by what was on its way", "offsets.go", `	for tp := range g.inFlight {
		stored[tp] = struct{}{}
	}
`, ``},
	{"G8: a transaction of a group that is gone", "committing.go", `deleted := gone || o.order`, `_ = gone
		deleted := o.order`},
	{"G11: an offset deleted by an older tombstone", "offsets.go", `	if g.offsets[tp].order < tombstone {
		delete(g.offsets, tp)
	}`, `	delete(g.offsets, tp)`},
	{"G11: an offset that an earlier acknowledged tombstone forgets to delete", "committing.go", `gone || o.order < c.group.inFlight[o.topicPartition].tombstone`, `gone`},
	{"G12: a group that may lose what it reads", "offset_delete.go", `(!g.topicsKnown || slices.Contains(g.topics, topic))`, `slices.Contains(g.topics, topic) && false`},
	{"P4: a group that cannot be stored and stays", "record.go", `			m.answerJoin(c.group, mb, joinRefused("", mb.join.version, storeError(err)))
`, ``},
	{"P10: a leader that the record does not have", "load.go", `	if g.byID[g.leader] == nil {
		g.leader = g.members[0].id
	}
`, ``},
	{"P13: a load that lets too many in", "load.go", `	if len(g.members) > l.m.cfg.MaxGroupSize {
		l.m.prepareRebalance(g)
	}
`, ``},
	{"P14: Syncs that nobody answers after an unload", "load.go", `				m.reply(mb.sync.id, syncRefused(mb.sync.version, kerr.NotCoordinator))
`, ``},
	{"P14: requests whose appends an unload forgets", "load.go", `			pending.then.appended(m, kerr.NotLeaderForPartition)
`, ``},
	{"P17: no rebalance timeout in the oldest record", "load.go", `	if v.Version < 1 {
		mb.rebalanceTimeout = mb.sessionTimeout
	}
`, ``},
	{"newcomer that nobody times out once it is a member", "newcomers.go", `		m.arm(&n.session, m.cfg.NewMemberJoinTimeout)
`, ``},
	{"newcomers that share no protocol", "newcomers.go", `		if !g.supports(n.protocolType, n.protocols, nil) {`, `		if false {`},
	{"expected ids of which one is missing", "newcomers.go", `		if !waits && g.byInstance[id] == nil {
			return false
		}
`, ``},
	{"ids taken off the list are forgotten with the next change", "settings.go", `maps.Keys(before.dismissed)`, `maps.Keys(after.dismissed)`},
	{"a member that was dismissed and came back", "join.go", `	delete(g.settings.dismissed, *q.InstanceID) // it`, `	// it`},
	{"an offline leader in Completing", "offline.go", `	case g.state == completingRebalance && g.leader == mb.id:
		m.prepareRebalance(g) // nobody assigns; another one has to lead
`, ``},
	{"an offline member that keeps its work from a spare", "offline.go", ` || g.spares() && !mb.spare {`, ` {`},
	{"dismissed members that wait for one another for ever", "offline.go", `	return min(wait, session)`, `	return wait`},
	{"a forced rebalance with a longer deadline than the members'", "force.go", `deadline = min(deadline, ev.Deadline)`, `deadline = ev.Deadline`},
	{"a forced rebalance although an id is handed out", "force.go", `	for id := range g.pending {`, `	for id := range map[string]int(nil) {`},
	{"sessions that spares do not shorten", "spares.go", `		return min(short, mb.sessionTimeout)`, `		return mb.sessionTimeout`},
	{"a spare that leads", "rebalance.go", `leader.join.waiting && !leader.spare {`, `leader.join.waiting {`},
	{"D13: the option that does nothing", "rebalance.go", `!(mb.static() && m.cfg.AbsentStaticsKeepClock)`, `true`},
	{"D14: the option that looks only once", "rebalance.go", `	m.maybeCompleteJoin(g)
	if g.state == preparingRebalance {
		m.armAbsence(g)
	}`, `	m.maybeCompleteJoin(g)`},
}
