package membership

// An Input is what the owner of a [Member] tells it.
type Input interface{ input() }

// Start makes an unjoined member join.
type Start struct{}

// Tick says that time has passed; see [Member.NextDeadline].
type Tick struct{}

// Joined is the answer to [SendJoin].
type Joined struct {
	Seq        uint64
	Code       Code
	MemberID   string
	LeaderID   string
	Generation int32
	// Skip says that the leader must not make a new assignment (KIP-814): it has returned, and nothing rebalances.
	Skip    bool
	Members []JoinedMember // only for the leader
}

// A JoinedMember is one member of the group as the leader sees it.
type JoinedMember struct {
	ID         string
	InstanceID string // "" for a dynamic member
	Metadata   []byte // what it sent when it joined
}

// Synced is the answer to [SendSync].
type Synced struct {
	Seq        uint64
	Code       Code
	Assignment []byte
}

// HeartbeatAnswered is the answer to [SendHeartbeat].
type HeartbeatAnswered struct {
	Seq  uint64
	Code Code
}

// NoAnswer says that a request got no answer: the broker could not be reached or the connection broke.
type NoAnswer struct {
	Seq uint64
	Err error
}

// CommitRefused says that a commit with the token got an answer that speaks about the membership.
type CommitRefused struct {
	Token   CommitToken
	Request Request
	Code    Code
}

// RevokeDone says that the thread has released what a [Revoked] listed; made by [Revoked.Done].
type RevokeDone struct{ id uint64 }

// InputsChanged says that there are other tasks to assign than before, or tasks with other sources. Config.Tasks
// returns the new ones already.
type InputsChanged struct{}

// Rejoin makes the member join again, so that the leader hears what it has to say and plans anew.
type Rejoin struct{ Reason string }

// Stop ends the member. With Leave its tasks are free at once; without, a static member keeps its place until the
// session timeout.
type Stop struct{ Leave bool }

func (Start) input()             {}
func (Tick) input()              {}
func (Joined) input()            {}
func (Synced) input()            {}
func (HeartbeatAnswered) input() {}
func (NoAnswer) input()          {}
func (CommitRefused) input()     {}
func (RevokeDone) input()        {}
func (InputsChanged) input()     {}
func (Rejoin) input()            {}
func (Stop) input()              {}
