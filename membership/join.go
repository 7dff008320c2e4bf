package membership

import (
	"fmt"
	"time"

	"github.com/millrace-io/millrace/membership/assign"
	"github.com/millrace-io/millrace/membership/codec"
)

// startJoin begins a new join. The metadata is made here and kept for repeats of the same join: a coordinator that
// sees other bytes from a member in the middle of a rebalance starts another one.
func (m *Member) startJoin(reason string) {
	m.become(Joining)
	m.parked = 0
	m.beat = 0 // an answer to an older heartbeat says nothing about this join (M3)
	s := m.cfg.Subscription()
	s.Owned, s.Standby, s.Generation = m.owned, m.standby, m.granted
	m.known, m.knows = s.KnownHash(), s.Subtopologies
	m.join = SendJoin{Metadata: codec.EncodeMember(m.cfg.Topics, m.ownedSources(), &s), Reason: reason}
	m.retryAt, m.wish = time.Time{}, ""
	m.sendJoin()
}

func (m *Member) sendJoin() {
	m.parked = m.nextSeq()
	m.join.Seq, m.join.MemberID = m.parked, m.memberID
	m.do(m.join)
}

// ownedSources are the partitions behind the owned tasks, for Kafka's tools.
func (m *Member) ownedSources() []codec.TopicPartition {
	if len(m.owned) == 0 {
		return nil
	}
	return sourcesOf(m.owned, m.cfg.Tasks())
}

func (m *Member) onJoined(now time.Time, in Joined) {
	if m.state != Joining || in.Seq != m.parked {
		return
	}
	switch {
	case in.Code == None:
		m.joined(now, in)
	case in.Code == MemberIDRequired:
		m.memberID = in.MemberID
		m.sendJoin()
	case in.Code == FencedInstanceID:
		m.fenced(JoinGroup)
	case in.Code == UnknownMemberID, in.Code == IllegalGeneration:
		m.joinAnew(now, in.Code)
	case in.Code.moved(), in.Code == RebalanceInProgress:
		m.retry(now, in.Code.String())
	case in.Code == InvalidSessionTimeout:
		m.fail(&SessionTimeoutError{Group: m.cfg.Group})
	default:
		m.refused(JoinGroup, in.Code)
	}
}

// joinAnew is [Member.lost] within a join, after a pause: a coordinator that keeps refusing must not be flooded.
func (m *Member) joinAnew(now time.Time, c Code) {
	m.lost(JoinGroup, c)
	// lost has queued the request; take it back until the pause is over.
	m.actions = m.actions[:len(m.actions)-1]
	m.retry(now, c.String())
}

// joined goes on to SyncGroup, as leader with everybody's assignment.
func (m *Member) joined(now time.Time, in Joined) {
	m.become(Syncing)
	m.attempts = 0
	m.wake(in.Generation)
	m.memberID, m.generation = in.MemberID, in.Generation
	m.beatAt = now.Add(m.cfg.HeartbeatInterval)
	leader := in.LeaderID == in.MemberID
	// Up to version 8 a leader that returns is shown its former id as the leader, and nobody leads.
	former := !leader && incarnationOf(in.LeaderID, m.cfg.InstanceID)
	m.leads = leader || former
	m.skip = former || leader && in.Skip
	m.sync = SendSync{MemberID: m.memberID, Generation: m.generation}
	if leader && !m.skip {
		m.sync.Grants = m.planGrants(in)
	} else {
		m.leader = leaderMemory{}
	}
	m.sendSync()
}

// wake finds out whether a rebalance has passed without this member: somebody else may have its tasks since, and whoever
// made the plan did not know what it had. Commits with the new generation would be accepted, so the tasks must be given up
// before. A heartbeat would have said so, but a member may join again before it has sent one.
func (m *Member) wake(generation int32) {
	if len(m.owned) == 0 || m.generation == codec.NoGeneration || generation == m.generation || generation == m.generation+1 {
		return
	}
	m.do(Notify{Lost{Reason: fmt.Sprintf("generations have passed without this member: it was in %d and joined %d", m.generation, generation)}})
	m.owned, m.standby, m.granted = nil, nil, codec.NoGeneration
}

// inputsHash condenses what there is to assign now.
func (m *Member) inputsHash() uint64 { return assign.Hash(m.cfg.Tasks(), m.cfg.Standbys) }
