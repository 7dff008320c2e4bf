package membership

import (
	"fmt"

	"github.com/millrace-io/millrace/membership/codec"
)

// onCommitRefused hears what a commit was told about the membership. Only an answer to the present identity counts
// (M3). While a join or sync is under way an older generation is normal, and a coordinator that has forgotten the
// member says so in answer to that request, behind which another one would only queue (M5).
func (m *Member) onCommitRefused(in CommitRefused) {
	if in.Token.MemberID != m.memberID {
		return
	}
	settled := m.state == Stable || m.state == Revoking
	switch {
	case in.Code == FencedInstanceID:
		m.fenced(in.Request)
	case settled && in.Code == UnknownMemberID:
		m.lost(in.Request, in.Code)
	case settled && in.Code == IllegalGeneration && in.Token.Generation == m.generation:
		m.lost(in.Request, in.Code)
	}
}

// fenced is the end (M1).
func (m *Member) fenced(r Request) {
	err := &FencedError{InstanceID: m.cfg.InstanceID, Group: m.cfg.Group, MemberID: m.memberID, Request: r}
	m.become(Fenced)
	m.do(Notify{Fatal{Err: err}})
}

// fail ends the member with an error of another kind.
func (m *Member) fail(err error) {
	m.become(Dead)
	m.do(Notify{Fatal{Err: err}})
}

// refused ends the member with an answer that no retry changes.
func (m *Member) refused(r Request, c Code) {
	m.fail(&RefusedError{Group: m.cfg.Group, Request: r, Code: c})
}

// lost voids the assignment and joins again: after UNKNOWN_MEMBER_ID as a new member, after ILLEGAL_GENERATION under
// the same id (M2).
func (m *Member) lost(r Request, c Code) {
	if m.generation != codec.NoGeneration {
		m.do(Notify{Lost{Reason: fmt.Sprintf("the coordinator answered %s with %s", r, c)}})
	}
	if c == UnknownMemberID {
		m.memberID = ""
	}
	m.owned, m.standby = nil, nil
	m.granted, m.generation = codec.NoGeneration, codec.NoGeneration
	m.startJoin(fmt.Sprintf("%s was answered with %s", r, c))
}
