package membership

import "time"

// beats reports whether the member sends heartbeats in its state. A parked join keeps the session alive by itself.
func (m *Member) beats() bool {
	return m.state == Syncing || m.state == Stable || m.state == Revoking
}

func (m *Member) sendHeartbeat(now time.Time) {
	m.beat = m.nextSeq()
	m.beatAt = now.Add(m.interval(now))
	m.do(SendHeartbeat{Seq: m.beat, MemberID: m.memberID, Generation: m.generation})
}

// hurry brings heartbeats closer together for a while after a rebalance.
func (m *Member) hurry(now time.Time, settling bool) {
	m.hurryUntil = now.Add(m.cfg.HeartbeatInterval)
	if settling {
		m.hurryUntil = now.Add(settlingIntervals * m.cfg.HeartbeatInterval)
	}
	m.beatAt = now.Add(m.interval(now))
}

func (m *Member) interval(now time.Time) time.Duration {
	if now.Before(m.hurryUntil) {
		return min(m.cfg.HeartbeatInterval, hurryInterval)
	}
	return m.cfg.HeartbeatInterval
}

func (m *Member) onHeartbeat(now time.Time, in HeartbeatAnswered) {
	if in.Seq == 0 || in.Seq != m.beat {
		return
	}
	m.beat = 0
	switch {
	case in.Code == None:
		if m.parked == 0 && m.retryAt.IsZero() {
			if m.attempts > 0 {
				m.log("the coordinator answers again")
			}
			m.attempts = 0
		}
	case in.Code == RebalanceInProgress:
		// Syncing: the answer to SyncGroup will say so too. Revoking: the member joins once the thread has released.
		if m.state == Stable {
			m.startJoin("the group rebalances")
		}
	case in.Code == FencedInstanceID:
		m.fenced(Heartbeat)
	case in.Code == UnknownMemberID, in.Code == IllegalGeneration:
		m.lost(Heartbeat, in.Code)
	case in.Code.moved():
		m.tellTrouble("a heartbeat was answered " + in.Code.String())
		m.beatAt = now.Add(m.backoff())
	default:
		m.refused(Heartbeat, in.Code)
	}
}
