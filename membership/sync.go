package membership

import (
	"slices"
	"time"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/membership/codec"
)

func (m *Member) sendSync() {
	m.parked = m.nextSeq()
	m.sync.Seq = m.parked
	m.do(m.sync)
}

func (m *Member) onSynced(now time.Time, in Synced) {
	if m.state != Syncing || in.Seq != m.parked {
		return
	}
	switch {
	case in.Code == None:
		m.synced(now, in.Assignment)
	case in.Code == RebalanceInProgress:
		m.startJoin("the rebalance began again before the assignment came")
	case in.Code == FencedInstanceID:
		m.fenced(SyncGroup)
	case in.Code == UnknownMemberID, in.Code == IllegalGeneration:
		m.lost(SyncGroup, in.Code)
	case in.Code.moved():
		m.retry(now, in.Code.String())
	default:
		m.refused(SyncGroup, in.Code)
	}
}

// synced takes the assignment: first the thread releases what is gone, then it gets the rest (M4).
func (m *Member) synced(now time.Time, assignment []byte) {
	m.parked, m.attempts = 0, 0
	_, a, err := codec.DecodeGrant(assignment)
	if err != nil {
		m.fail(&AssignmentError{Group: m.cfg.Group, Err: err})
		return
	}
	if a.Version == 0 && len(assignment) > 0 {
		// Nothing, and not from a leader of ours: a coordinator with hot spares hides them from the leader and gives them
		// an empty list. There is nobody to tell about us.
		a.KnownHash = m.known
	}
	m.hurry(now, a.Settling)
	m.inputs = a.InputsHash
	m.leaveOutUnknown(&a)
	slices.SortFunc(a.Active, taskid.ID.Compare)
	gone := slices.DeleteFunc(slices.Clone(m.owned), func(id taskid.ID) bool { return slices.Contains(a.Active, id) })
	m.granted = m.generation // the claims that remain hold in this generation
	if len(gone) > 0 {
		m.become(Revoking)
		m.next = a
		m.revocation++
		m.do(Notify{Revoked{Tasks: gone, id: m.revocation}})
		return
	}
	m.become(Stable)
	m.take(a)
	if reason := m.rejoinReason(a); reason != "" {
		m.startJoin(reason)
	}
}

// leaveOutUnknown drops the tasks of sub-topologies that this member does not have: the assignment was made for the version
// of the application that ran here before a restart. They are not claimed either, so the next plan gives them to who has
// them; that it follows at once is because the leader knew another topology hash of this member (see rejoinReason).
func (m *Member) leaveOutUnknown(a *codec.Assignment) {
	if len(m.knows) == 0 {
		return
	}
	unknown := func(id taskid.ID) bool { return !slices.Contains(m.knows, id.Subtopology) }
	for _, id := range a.Active {
		if unknown(id) {
			m.log("task %v is of another version of the topology, this process does not run it", id)
		}
	}
	a.Active = slices.DeleteFunc(a.Active, unknown)
	a.Standby = slices.DeleteFunc(a.Standby, unknown)
}

// take makes a the member's assignment.
func (m *Member) take(a codec.Assignment) {
	m.owned, m.standby = a.Active, a.Standby
	m.do(Notify{Assigned{Generation: m.generation, Active: slices.Clone(a.Active), Standby: slices.Clone(a.Standby)}})
}

// onRevokeDone goes on after the thread has released its tasks: it gets the rest and joins again, so that the leader
// can give the released tasks to others. A report about an older revocation is ignored: meanwhile the member lost
// everything, and the report says nothing about what it got since.
func (m *Member) onRevokeDone(in RevokeDone) {
	if m.state != Revoking || in.id != m.revocation {
		return
	}
	m.take(m.next)
	m.next = codec.Assignment{}
	m.startJoin("the thread has released its revoked tasks")
}

// rejoinReason says why the assignment, though valid, calls for another rebalance, or "".
func (m *Member) rejoinReason(a codec.Assignment) string {
	if len(a.Release) > 0 {
		return "others wait for tasks that this member no longer has"
	}
	if a.KnownHash == m.known {
		m.forcedKnown = 0
	} else if m.forcedKnown != m.known {
		m.forcedKnown = m.known // once: a leader that cannot read it will not learn it by being told again
		return "the leader did not know this member's endpoint, topology or tags"
	}
	if m.wish != "" {
		return m.wish
	}
	return m.outdated()
}

// outdated says why a leader must plan again, or "". Only the leader asks: if every member joined again, a topic that
// grows would cost as many rebalances as there are processes.
func (m *Member) outdated() string {
	if !m.leads {
		return ""
	}
	inputs := m.inputsHash()
	if m.inputs == inputs {
		m.forcedInputs = 0
		return ""
	}
	if !m.skip { // it made the plan itself, and has other tasks since
		return "what there is to assign has changed"
	}
	if m.forcedInputs == inputs {
		return "" // once: the assignment is somebody else's, and may stay as it is
	}
	m.forcedInputs = inputs
	return "what there is to assign has changed while the leader was away"
}
