package coordinator

// mutants are the broken rules. A rule that moves takes its row with it.
var mutants = []mutant{
	{"a replacement without fencing what is parked", "static.go", `	m.fence(g, mb)
	m.takeOver(`, `	m.takeOver(`},
	{"a replacement in Completing without a rebalance (KAFKA-9801)", "static.go", `	case completingRebalance:
		m.storeRename(g, mb)
		m.prepareRebalance(g)`, `	case completingRebalance:
		m.storeRename(g, mb)`},
	{"validation without fencing", "group.go", `		case holder.id != memberID:
			return nil, kerr.FencedInstanceID
`, ``},
	{"a replaced leader that leads under its old id", "group.go", `	if g.leader == mb.id {
		g.leader = id
	}
`, ``},
	{"join timer that removes static members (KAFKA-8220)", "rebalance.go", `!mb.join.waiting && !mb.static()`, `!mb.join.waiting`},
	{"sync timer that removes static members (D2)", "rebalance.go", `mb.owesSync && !(mb.static() && m.holds(syncTimerSparesStatics))`, `mb.owesSync`},
	{"new member that is parked for ever (KAFKA-9232)", "timers.go", `if !mb.isNew && (mb.join.waiting || mb.sync.waiting) {`, `if mb.join.waiting || mb.sync.waiting {`},
	{"failed replacement that is not taken back", "static.go", `	if waits {
		m.answerJoin(g, mb, c.refused(g, storeError(err)))
		m.restore(g, mb)
	}`, `	if waits {
		m.answerJoin(g, mb, c.refused(g, storeError(err)))
	}`},
	{"two replacements that remember the wrong id (D12)", "static.go", `	if mb.storing == 0 {
		mb.stored = mb.identity()
	}`, `	mb.stored = mb.identity()`},
	{"transactional offsets on their way that count as stable", "offsets.go", `	if g.inFlight[tp].txn > 0 {
		return true
	}
`, ``},
	{"late acknowledgement that brings an old offset back", "offsets.go", `; !ok || present.order < o.order {`, `; !ok || present.order != o.order {`},
	{"no session after a rebalance", "rebalance.go", `		m.arm(&mb.session, g.session(mb))
	}
	if present {`, `	}
	if present {`},
	{"size check before the instance id is resolved (D1)", "join.go", `	if replaced != nil && m.holds(replacementIsNotGrowth) {
		return true
	}
`, ``},
	{"leader that is not told to skip the assignment (KIP-814)", "static.go", `resp.SkipAssignment = g.leader == c.member.id`, `resp.SkipAssignment = false`},
	{"old client that takes itself for the leader after a restart", "static.go", `	resp.LeaderID = c.previousLeader
	resp.Members = nil
	return resp
}

func (c *replacementStored) refused`, `	resp.Members = nil
	return resp
}

func (c *replacementStored) refused`},
	{"late assignment of an older generation", "sync.go", `	if g.state != completingRebalance || g.generation != c.generation {
		return
	}`, `	if g.state != completingRebalance {
		return
	}`},
	{"Syncs that a rebalance leaves parked", "rebalance.go", `		m.resetAssignments(g, kerr.RebalanceInProgress)`, `		m.forgetSyncs(g)`},
	{"heartbeat that does not restart the session", "heartbeat.go", `	m.heard(mb)`, `	_ = mb`},
	{"no sessions after a load", "load.go", `	l.m.arm(&mb.session, mb.sessionTimeout)
`, ``},
	{"leave that leaves a parked Join", "leave.go", `	m.refuseParkedJoin(g, mb)
`, ``},
	{"handed out ids that a rebalance does not wait for", "rebalance.go", `	if len(g.pending) > 0 {
		return false
	}
`, ``},
	{"commit in Completing", "offset_commit.go", `	case g.state == completingRebalance:
		return nil, kerr.RebalanceInProgress
`, ``},
	{"initial rebalance that can be prolonged for ever", "rebalance.go", `g.remaining = max(g.remaining-previous, 0)`, `g.remaining = max(previous, 0)`},
	{"replacement in a rebalance that is not stored (D10b)", "static.go", `	m.storeRename(g, mb)
		m.maybeCompleteJoin(g)`, `	m.maybeCompleteJoin(g)`},
	{"open transaction that is visible after a load", "load.go", `	if r.Txn != nil {`, `	if false {`},
	{"repeated Join that counts twice", "join.go", `		g.parkedJoins--
	}
	mb.join = parked`, `	}
	mb.join = parked`},
	{"forced rebalance that keeps who does not come", "force.go", `		if !mb.join.waiting {
			m.removeMember(g, mb)
		}`, `		if !mb.join.waiting && !mb.static() {
			m.removeMember(g, mb)
		}`},
	{"forced rebalance of a group with dynamic members", "force.go", `		if !mb.static() {
			return`, `		if false {
			return`},
	{"offline members that leave one by one", "offline.go", `return !mb.offline })`, `return !mb.offline || mb.offlineSince+instant(g.offlineWait(mb)) > m.now })`},
	{"rebalance that waits for offline members", "rebalance.go", `return mb.offline || m.cfg`, `return m.cfg`},
	{"expansion timeout that every newcomer prolongs", "newcomers.go", `	if len(g.newcomers) == 0 {
		g.newcomersSince = m.now
	}`, `	g.newcomersSince = m.now`},
	{"newcomers that another rebalance leaves waiting", "rebalance.go", `	m.admitNewcomers(g)
`, ``},
	{"spare that the leader assigns to", "join.go", `		if mb.spare {
			continue
		}
`, ``},
	{"new id that is handed out before it is stored (D10b)", "rebalance.go", `g.renames > 0 && g.parkedJoins > 0`, `false`},
	{"removal that a waiting newcomer keeps from the log (D10a)", "static.go", `len(g.members)+len(g.pending)+len(g.newcomers) == 0`, `len(g.members)+len(g.pending) == 0`},
}
