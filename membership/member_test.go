package membership

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/membership/assign"
	"github.com/millrace-io/millrace/membership/codec"
)

// TestMember runs the scripts of testdata with scripted answers of a coordinator. Commands: "new [dynamic]" makes a
// member; "start", "rejoin", "stop [leave]", "done [n]" (the n-th revocation is released, default the last), "tick D";
// "joined", "synced", "beat" are answers to the outstanding request, with code=N, member=, leader=, generation=, skip,
// active=0,1 release=2 known=same|other|none tasks=N (the inputs hash is for N tasks); "late joined|synced|beat …"
// answers a request that is no longer outstanding; "no-answer join|beat"; "commit code=N [member=] [generation=]".
// The output is what the member does, and where it stands afterwards.
func TestMember(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		var s *script
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "new" {
				s = newScript(!d.HasArg("dynamic"))
				return s.state()
			}
			return s.run(t, d)
		})
	})
}

type script struct {
	m       *Member
	now     time.Time
	tasks   int
	revoked []Revoked
}

func newScript(static bool) *script {
	s := &script{now: time.Unix(0, 0), tasks: 4}
	cfg := Config{Group: "g", HeartbeatInterval: 3 * time.Second, Topics: []string{"in"}}
	if static {
		cfg.InstanceID = "i"
	}
	cfg.Subscription = func() codec.Subscription { return subscription }
	cfg.Tasks = func() []assign.Task { return tasks(s.tasks) }
	s.m = NewMember(cfg)
	return s
}

var subscription = codec.Subscription{ProcessID: "p", ClientID: "c", Endpoint: "h:1"}

func tasks(n int) []assign.Task {
	list := make([]assign.Task, n)
	for i := range list {
		list[i].ID = taskid.ID{Subtopology: "t", Partition: int32(i)}
	}
	return list
}

// args reads a command's key=value arguments.
type args map[string]string

func (a args) num(key string, def int) int {
	v, ok := a[key]
	if !ok {
		return def
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		panic(err)
	}
	return n
}

func (a args) ids(key string) (ids []taskid.ID) {
	for item := range strings.SplitSeq(a[key], ",") {
		if item != "" {
			n, err := strconv.Atoi(item)
			if err != nil {
				panic(err)
			}
			ids = append(ids, taskid.ID{Subtopology: "t", Partition: int32(n)})
		}
	}
	return ids
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	a, words := args{}, []string{}
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) > 0 {
			a[arg.Key] = strings.Join(arg.Vals, ",")
		} else {
			words = append(words, arg.Key)
		}
	}
	word := func(w string) bool { return len(words) > 0 && words[0] == w }
	cmd, late := d.Cmd, uint64(0)
	if cmd == "late" {
		cmd, late = words[0], 1_000_000
	}
	token, _ := s.m.Token()
	switch cmd {
	case "start":
		return s.step(Start{})
	case "tick":
		pause, err := time.ParseDuration(words[0])
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.now = s.now.Add(pause)
		return s.step(Tick{})
	case "rejoin":
		return s.step(Rejoin{Reason: "wanted"})
	case "stop":
		return s.step(Stop{Leave: word("leave")})
	case "tasks":
		s.tasks = a.num("n", 0)
		return s.state()
	case "done":
		return s.step(s.revoked[a.num("n", len(s.revoked))-1].Done())
	case "joined":
		return s.step(s.joined(a, late, len(words) > 0 && words[len(words)-1] == "skip"))
	case "synced":
		return s.step(Synced{Seq: s.m.parked + late, Code: Code(a.num("code", 0)), Assignment: s.assignment(a)})
	case "beat":
		return s.step(HeartbeatAnswered{Seq: s.m.beat + late, Code: Code(a.num("code", 0))})
	case "no-answer":
		seq := s.m.parked
		if word("beat") {
			seq = s.m.beat
		}
		return s.step(NoAnswer{Seq: seq, Err: errors.New("no route")})
	case "commit":
		if v, ok := a["member"]; ok {
			token.MemberID = v
		}
		token.Generation = int32(a.num("generation", int(token.Generation)))
		return s.step(CommitRefused{Token: token, Request: OffsetCommit, Code: Code(a.num("code", 0))})
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
		return ""
	}
}

func (s *script) joined(a args, late uint64, skip bool) Joined {
	in := Joined{Seq: s.m.parked + late, Code: Code(a.num("code", 0)), MemberID: a["member"], LeaderID: a["leader"], Generation: int32(a.num("generation", 0)), Skip: skip}
	if in.LeaderID == in.MemberID {
		in.Members = []JoinedMember{{ID: in.MemberID, InstanceID: s.m.cfg.InstanceID, Metadata: s.m.join.Metadata}, {ID: "broken", Metadata: []byte("?")}}
	}
	return in
}

// assignment is what the coordinator stores for the member: garbage=yes is another application's bytes, spare=yes is what a coordinator gives hot spares, none=yes is
// what a member gets that the leader left out.
func (s *script) assignment(a args) []byte {
	if a["garbage"] != "" {
		return []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01?")
	}
	if a["spare"] != "" {
		return []byte("\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff") // version 0, no topics, no user data
	}
	if a["none"] != "" {
		return nil
	}
	known := subscription.KnownHash()
	switch a["known"] {
	case "other":
		known++
	case "none":
		known = 0
	}
	g := codec.Assignment{Active: a.ids("active"), Release: a.ids("release"), KnownHash: known, InputsHash: assign.Hash(tasks(a.num("tasks", 4)), 0)}
	return codec.EncodeGrant(nil, &g)
}

func (s *script) step(in Input) string {
	var b strings.Builder
	for _, a := range s.m.Step(s.now, in) {
		if n, ok := a.(Notify); ok {
			if r, ok := n.Event.(Revoked); ok {
				s.revoked = append(s.revoked, r)
			}
		}
		fmt.Fprintln(&b, a)
		if j, ok := a.(SendJoin); ok {
			_, sub, err := codec.DecodeMember(j.Metadata)
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(&b, "     claims %v of generation %d\n", sub.Owned, sub.Generation)
		}
	}
	return b.String() + s.state()
}

func (s *script) state() string {
	out := string(s.m.State())
	if token, ok := s.m.Token(); ok {
		out += fmt.Sprintf(", commits as %q in generation %d", token.MemberID, token.Generation)
	}
	if at, ok := s.m.NextDeadline(); ok {
		out += fmt.Sprintf(", wakes in %v", at.Sub(s.now))
	}
	return out
}

// TestReactions is the table of what each answer means, for each request of a static member that has tasks.
func TestReactions(t *testing.T) {
	const (
		fencedOut = "Fenced"                  // for good
		refusedAs = "Dead"                    // for good, for another reason
		anew      = "Joining as \"\""         // a new identity, the tasks are lost
		again     = "Joining as \"m\", lost"  // the same identity, the tasks are lost
		keeping   = "Joining as \"m\", keeps" // the same identity and tasks
		retries   = "retries"                 // the same request, after a pause
		ignores   = "ignores"                 // nothing happens
	)
	want := map[Code]map[Request]string{
		FencedInstanceID:          {JoinGroup: fencedOut, SyncGroup: fencedOut, Heartbeat: fencedOut, OffsetCommit: fencedOut, TxnOffsetCommit: fencedOut},
		UnknownMemberID:           {JoinGroup: anew, SyncGroup: anew, Heartbeat: anew, OffsetCommit: anew, TxnOffsetCommit: anew},
		IllegalGeneration:         {JoinGroup: again, SyncGroup: again, Heartbeat: again, OffsetCommit: again, TxnOffsetCommit: again},
		RebalanceInProgress:       {JoinGroup: retries, SyncGroup: keeping, Heartbeat: keeping, OffsetCommit: ignores, TxnOffsetCommit: ignores},
		CoordinatorLoadInProgress: {JoinGroup: retries, SyncGroup: retries, Heartbeat: retries, OffsetCommit: ignores, TxnOffsetCommit: ignores},
		CoordinatorNotAvailable:   {JoinGroup: retries, SyncGroup: retries, Heartbeat: retries, OffsetCommit: ignores, TxnOffsetCommit: ignores},
		NotCoordinator:            {JoinGroup: retries, SyncGroup: retries, Heartbeat: retries, OffsetCommit: ignores, TxnOffsetCommit: ignores},
		GroupMaxSizeReached:       {JoinGroup: refusedAs},
		InconsistentGroupProtocol: {JoinGroup: refusedAs, SyncGroup: refusedAs},
		InvalidGroupID:            {JoinGroup: refusedAs, SyncGroup: refusedAs, Heartbeat: refusedAs, OffsetCommit: ignores},
		InvalidSessionTimeout:     {JoinGroup: refusedAs},
		GroupAuthorizationFailed:  {JoinGroup: refusedAs, SyncGroup: refusedAs, Heartbeat: refusedAs, OffsetCommit: ignores},
		UnsupportedVersion:        {JoinGroup: refusedAs},
		MemberIDRequired:          {JoinGroup: "Joining as \"handed out\", keeps"},
		Code(-1):                  {JoinGroup: refusedAs, SyncGroup: refusedAs, Heartbeat: refusedAs},
	}
	for code, byRequest := range want {
		for request, reaction := range byRequest {
			t.Run(fmt.Sprintf("%s/%s", request, code), func(t *testing.T) {
				if got := react(t, request, code); got != reaction {
					t.Errorf("got %q, want %q", got, reaction)
				}
			})
		}
	}
}

// react brings a member to where the request is outstanding, answers it, and says what the member did.
func react(t *testing.T, r Request, c Code) string {
	s := newScript(true)
	m := s.m
	settle := func(generation int32) {
		m.Step(s.now, Joined{Seq: m.parked, MemberID: "m", LeaderID: "other", Generation: generation})
		m.Step(s.now, Synced{Seq: m.parked, Assignment: s.assignment(args{"active": "0,1"})})
	}
	m.Step(s.now, Start{})
	settle(1)
	var actions []Action
	switch r {
	case JoinGroup:
		m.Step(s.now, Rejoin{})
		actions = m.Step(s.now, Joined{Seq: m.parked, Code: c, MemberID: "handed out"})
	case SyncGroup:
		m.Step(s.now, Rejoin{})
		m.Step(s.now, Joined{Seq: m.parked, MemberID: "m", LeaderID: "other", Generation: 2})
		actions = m.Step(s.now, Synced{Seq: m.parked, Code: c})
	case Heartbeat:
		s.now = s.now.Add(3 * time.Second)
		m.Step(s.now, Tick{})
		actions = m.Step(s.now, HeartbeatAnswered{Seq: m.beat, Code: c})
	default:
		token, _ := m.Token()
		actions = m.Step(s.now, CommitRefused{Token: token, Request: r, Code: c})
	}
	return outcome(t, s, r, actions)
}

func outcome(t *testing.T, s *script, r Request, actions []Action) string {
	m := s.m
	lost := false
	for _, a := range actions {
		n, ok := a.(Notify)
		if !ok {
			continue
		}
		switch e := n.Event.(type) {
		case Lost:
			lost = true
		case Fatal:
			fe, fenced := errors.AsType[*FencedError](e.Err)
			if fenced != (m.State() == Fenced) || fenced && fe.Request != r {
				t.Errorf("state %s with %v", m.State(), e.Err)
			}
			if m.Step(s.now, Rejoin{}); m.parked != 0 {
				t.Error("a member that is gone for good joins again")
			}
		}
	}
	pause, sleeping := m.NextDeadline()
	switch {
	case m.State() == Fenced || m.State() == Dead:
		return string(m.State())
	case m.State() == Joining && m.memberID == "":
		return "Joining as \"\""
	case lost:
		return fmt.Sprintf("Joining as %q, lost", m.memberID)
	case m.State() == Joining && m.parked != 0:
		return fmt.Sprintf("Joining as %q, keeps", m.memberID)
	case len(actions) == 0 && r != Heartbeat:
		return "ignores"
	case sleeping && pause.Sub(s.now) == minBackoff:
		return "retries"
	default:
		return fmt.Sprintf("%s %v", m.State(), actions)
	}
}

// A member that is left out of a rebalance, is never told anything and is stopped must not keep anything running.
func TestStopIsFinal(t *testing.T) {
	s := newScript(true)
	s.m.Step(s.now, Start{})
	s.m.Step(s.now, Stop{})
	if actions := s.m.Step(s.now, Joined{Seq: 1, MemberID: "m", Generation: 1}); len(actions) > 0 || s.m.State() != Dead {
		t.Errorf("%s does %v", s.m.State(), actions)
	}
	if at, ok := s.m.NextDeadline(); ok {
		t.Errorf("a dead member wants to wake at %v", at)
	}
}
