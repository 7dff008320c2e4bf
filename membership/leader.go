package membership

import (
	"slices"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/membership/assign"
	"github.com/millrace-io/millrace/membership/codec"
)

// A leaderMemory is what a leader remembers of its last plan. The metadata that the coordinator shows of a member
// that has not joined since is older than that plan: it does not tell what the plan granted. The memory fills the gap,
// and tells what a static member had before it came back empty-handed.
type leaderMemory struct {
	generation int32
	grants     map[string]remembered // by instance id, or member id of a dynamic member
}

type remembered struct {
	memberID string
	active   []taskid.ID
}

// memoryKey names a member across restarts as far as that is possible.
func memoryKey(j JoinedMember) string {
	if j.InstanceID != "" {
		return "instance " + j.InstanceID
	}
	return "member " + j.ID
}

// planGrants makes everybody's assignment and remembers it.
func (m *Member) planGrants(in Joined) []MemberGrant {
	tasks := m.cfg.Tasks()
	known := make(map[string]uint64, len(in.Members)) // by member id
	input := assign.Input{Tasks: tasks, Standbys: m.cfg.Standbys}
	latest := int32(codec.NoGeneration)
	for _, j := range in.Members {
		member := assign.Member{ID: j.ID, InstanceID: j.InstanceID, Generation: codec.NoGeneration}
		if _, s, err := codec.DecodeMember(j.Metadata); err == nil {
			known[j.ID] = s.KnownHash()
			describe(&member, s)
		} else {
			m.log("member %q joined with user data that cannot be read, it gets tasks all the same: %v", j.ID, err)
		}
		latest = max(latest, member.Generation)
		input.Members = append(input.Members, member)
	}
	if m.leader.generation >= latest { // else another leader has made a plan since
		m.recall(&input, in.Members)
	}

	plan := assign.Assign(input)
	m.logPlan(plan)
	return m.grants(plan, input, in.Members, known)
}

// toldMoves is how many moves of a plan are told one by one: a rebalance of a thousand tasks must not flood the log.
const toldMoves = 20

func (m *Member) logPlan(plan assign.Plan) {
	for _, move := range plan.Moves[:min(len(plan.Moves), toldMoves)] {
		m.log("plan of generation %d: %s", m.generation, move)
	}
	if rest := len(plan.Moves) - toldMoves; rest > 0 {
		m.log("plan of generation %d: and %d more moves like these", m.generation, rest)
	}
}

// describe fills in what the member said of itself.
func describe(member *assign.Member, s codec.Subscription) {
	member.ProcessID = s.ProcessID
	member.Claims, member.Generation = s.Owned, s.Generation
	member.Standby, member.Knows = s.Standby, s.Subtopologies
	member.Offsets = make(map[taskid.ID]int64, len(s.Offsets))
	for _, o := range s.Offsets {
		member.Offsets[o.Task] = o.Sum
	}
}

// recall adds what the leader remembers: what a member ran last, and the claims of one that has not joined since.
func (m *Member) recall(input *assign.Input, joined []JoinedMember) {
	for i := range input.Members {
		member := &input.Members[i]
		last, ok := m.leader.grants[memoryKey(joined[i])]
		if !ok {
			continue
		}
		member.Previous = last.active
		if last.memberID == member.ID && member.Generation < m.leader.generation {
			member.Claims = append(slices.Clone(member.Claims), last.active...)
			member.Generation = m.leader.generation
		}
	}
}

// grants encodes the plan. The hash of what the leader knew of a member is 0 if it knew nothing.
func (m *Member) grants(plan assign.Plan, input assign.Input, joined []JoinedMember, known map[string]uint64) []MemberGrant {
	m.leader = leaderMemory{generation: m.generation, grants: make(map[string]remembered, len(joined))}
	inputs := assign.Hash(input.Tasks, input.Standbys)
	settling := slices.ContainsFunc(plan.Moves, func(move assign.Move) bool { return move.Withheld })
	list := make([]MemberGrant, 0, len(joined))
	for _, j := range joined {
		g, _ := plan.Of(j.ID)
		m.leader.grants[memoryKey(j)] = remembered{memberID: j.ID, active: g.Active}
		a := codec.Assignment{
			Generation: m.generation, Active: g.Active, Standby: g.Standby, Release: g.Release,
			KnownHash: known[j.ID], InputsHash: inputs, Settling: settling,
		}
		list = append(list, MemberGrant{MemberID: j.ID, Bytes: codec.EncodeGrant(sourcesOf(g.Active, input.Tasks), &a)})
	}
	return list
}

// sourcesOf lists the source partitions of the tasks with the given ids.
func sourcesOf(ids []taskid.ID, tasks []assign.Task) (sources []codec.TopicPartition) {
	for _, t := range tasks {
		if slices.Contains(ids, t.ID) {
			for _, tp := range t.Sources {
				sources = append(sources, codec.TopicPartition(tp))
			}
		}
	}
	return sources
}
