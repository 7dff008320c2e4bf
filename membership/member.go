package membership

import (
	"fmt"
	"slices"
	"time"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/membership/assign"
	"github.com/millrace-io/millrace/membership/codec"
)

// Config is what a [Member] is made of. Its functions are called from Step, on the owner's goroutine, and must only
// return values that are at hand.
type Config struct {
	Group      string
	InstanceID string // "" for a dynamic member
	// HeartbeatInterval is the time between heartbeats, and so the time it takes to notice a rebalance.
	HeartbeatInterval time.Duration
	// Topics are the topics that the application reads; only tools of Kafka's look at them.
	Topics []string
	// Subscription says what the member has to tell, at each join. Owned, Standby and Generation are filled
	// in by the machine.
	Subscription func() codec.Subscription
	// Tasks says what there is to assign. Asked when the member leads, or led before it came back.
	Tasks func() []assign.Task
	// Standbys is the number of copies of a stateful task beside the active one.
	Standbys int
}

// A State is where a member stands.
type State string

// The states; see the package comment for the edges.
const (
	Unjoined State = "Unjoined"
	Joining  State = "Joining"
	Syncing  State = "Syncing"
	Stable   State = "Stable"
	Revoking State = "Revoking"
	Fenced   State = "Fenced"
	Dead     State = "Dead"
)

// edges lists every allowed transition.
var edges = map[State][]State{
	Unjoined: {Joining, Dead},
	Joining:  {Joining, Syncing, Fenced, Dead},
	Syncing:  {Joining, Stable, Revoking, Fenced, Dead},
	Stable:   {Joining, Fenced, Dead},
	Revoking: {Joining, Fenced, Dead},
	Fenced:   {Dead},
}

// Retries of requests that found no coordinator wait this long, doubling from one to the other.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = time.Second
)

// Rebalances come in flocks: threads and processes start together, and what one member releases another waits for. So
// for a while after each rebalance a member listens closely; else every round would cost a heartbeat interval.
const (
	hurryInterval = 100 * time.Millisecond
	// settlingIntervals bounds, in heartbeat intervals, how long it hurries while tasks are being released. Without
	// that it hurries for one interval.
	settlingIntervals = 10
)

// A Member is the machine of one group member. It is not safe for concurrent use; its owner serialises Step.
type Member struct {
	cfg   Config
	state State

	memberID   string
	generation int32            // of the last successful join, or codec.NoGeneration
	granted    int32            // the generation in which owned was granted
	owned      []taskid.ID      // active tasks that the thread has or is about to get; sorted
	standby    []taskid.ID      // tasks that it keeps copies of
	next       codec.Assignment // Revoking: what holds once the thread has released the rest
	revocation uint64           // id of the latest Revoked
	known      uint64           // hash of what the last join told the leader
	knows      []string         // the sub-topologies that it told; empty: all

	seq        uint64 // of the latest request
	parked     uint64 // the outstanding JoinGroup or SyncGroup, 0 if none
	beat       uint64 // the outstanding Heartbeat, 0 if none
	join       SendJoin
	sync       SendSync
	retryAt    time.Time // when join or sync is sent again; zero if it need not be
	beatAt     time.Time // when the next heartbeat is due
	hurryUntil time.Time // until then heartbeats are closer together
	attempts   int       // failed attempts in a row

	leader leaderMemory
	leads  bool   // this member leads, or led before it came back and nobody does now
	skip   bool   // it leads, and the assignment was not made anew
	inputs uint64 // hash of what there was to assign when the assignment was made
	wish   string // why to join again once the join under way is over, or ""

	forcedKnown  uint64 // the hash for which a join was forced already, 0 if none
	forcedInputs uint64 // likewise

	actions []Action
}

// NewMember returns an unjoined member.
func NewMember(cfg Config) *Member {
	return &Member{cfg: cfg, state: Unjoined, generation: codec.NoGeneration, granted: codec.NoGeneration}
}

// State returns the member's state.
func (m *Member) State() State { return m.state }

// Token returns what commits must carry. It is false while the member has no place in the group.
func (m *Member) Token() (CommitToken, bool) {
	live := m.state == Joining || m.state == Syncing || m.state == Stable || m.state == Revoking
	if !live || m.memberID == "" || m.generation == codec.NoGeneration {
		return CommitToken{}, false
	}
	return CommitToken{Group: m.cfg.Group, MemberID: m.memberID, InstanceID: m.cfg.InstanceID, Generation: m.generation}, true
}

// Step applies one input and returns what must be done now, in order. The slice is reused by the next Step.
func (m *Member) Step(now time.Time, in Input) []Action {
	m.actions = m.actions[:0]
	if m.state == Fenced || m.state == Dead {
		if _, stop := in.(Stop); stop && m.state == Fenced {
			m.become(Dead)
		}
		return nil
	}
	switch in := in.(type) {
	case Start:
		m.onStart()
	case Tick:
		m.onTick(now)
	case Joined:
		m.onJoined(now, in)
	case Synced:
		m.onSynced(now, in)
	case HeartbeatAnswered:
		m.onHeartbeat(now, in)
	case NoAnswer:
		m.onNoAnswer(now, in)
	case CommitRefused:
		m.onCommitRefused(in)
	case RevokeDone:
		m.onRevokeDone(in)
	case InputsChanged:
		m.onInputsChanged()
	case Rejoin:
		m.onRejoin(in)
	case Stop:
		m.onStop(in)
	default:
		panic(fmt.Sprintf("membership: unknown input %T", in))
	}
	return m.actions
}

// NextDeadline says when Step must be called with a [Tick] even if nothing arrives.
func (m *Member) NextDeadline() (time.Time, bool) {
	at := m.retryAt
	if m.beats() && m.beat == 0 && (at.IsZero() || m.beatAt.Before(at)) {
		at = m.beatAt
	}
	return at, !at.IsZero()
}

func (m *Member) become(s State) {
	if !slices.Contains(edges[m.state], s) {
		panic(fmt.Sprintf("membership: no edge from %s to %s", m.state, s))
	}
	m.state = s
	if s == Fenced || s == Dead {
		m.parked, m.beat, m.retryAt = 0, 0, time.Time{}
	}
}

func (m *Member) do(a Action) { m.actions = append(m.actions, a) }

func (m *Member) log(format string, args ...any) { m.do(Log{Text: fmt.Sprintf(format, args...)}) }

func (m *Member) nextSeq() uint64 {
	m.seq++
	return m.seq
}

func (m *Member) onStart() {
	if m.state == Unjoined {
		m.startJoin("the thread has started")
	}
}

// onTick sends what is due.
func (m *Member) onTick(now time.Time) {
	if !m.retryAt.IsZero() && !now.Before(m.retryAt) {
		m.retryAt = time.Time{}
		if m.state == Joining {
			m.join.Again = true
			m.sendJoin()
		} else {
			m.sendSync()
		}
	}
	if m.beats() && m.beat == 0 && !now.Before(m.beatAt) {
		m.sendHeartbeat(now)
	}
}

// onNoAnswer sends again after a pause what got no answer. A coordinator that cannot be reached is no reason to give
// up: the member keeps its place for the session timeout, and whether it still has it only the coordinator can tell.
func (m *Member) onNoAnswer(now time.Time, in NoAnswer) {
	switch in.Seq {
	case 0:
	case m.parked:
		m.retry(now, "no answer: "+in.Err.Error())
	case m.beat:
		m.beat = 0
		m.tellTrouble("no answer to a heartbeat: " + in.Err.Error())
		m.beatAt = now.Add(m.backoff())
	}
}

// retry sends the parked request again after a pause.
func (m *Member) retry(now time.Time, why string) {
	m.parked = 0
	m.tellTrouble(why)
	m.retryAt = now.Add(m.backoff())
}

// tellTrouble tells the first failure of a row: an outage may last for hours.
func (m *Member) tellTrouble(why string) {
	if m.attempts == 0 {
		m.log("%s, trying until the coordinator answers: %s", m.state, why)
	}
}

func (m *Member) backoff() time.Duration {
	pause := min(minBackoff<<min(m.attempts, 8), maxBackoff)
	m.attempts++
	return pause
}

// onRejoin joins again. What a join under way has to say was put together before the wish, so another must follow; a
// member that is releasing tasks joins again anyway.
func (m *Member) onRejoin(in Rejoin) {
	switch m.state {
	case Stable:
		m.startJoin(in.Reason)
	case Joining, Syncing:
		m.wish = in.Reason
	}
}

// onInputsChanged makes a leader plan again. The others hear of it from the coordinator; a rebalance that is under way
// ends with the same question (see rejoinReason).
func (m *Member) onInputsChanged() {
	if m.state != Stable {
		return
	}
	if reason := m.outdated(); reason != "" {
		m.startJoin(reason)
	}
}

func (m *Member) onStop(in Stop) {
	id := m.memberID
	m.become(Dead)
	if in.Leave && id != "" {
		m.do(SendLeave{MemberID: id})
	}
}
