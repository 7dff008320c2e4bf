// Package assign decides which stream thread runs which task. [Assign] is a pure, deterministic function from what the
// leader knows to a [Plan] in which every move is explained. The types are a contract for further assignors.
//
// # Objectives, in this order
//
//  1. Every task that somebody knows has exactly one active member, or waits for its owner to release it.
//  2. Load is even: per thread, and per process in proportion to its threads, no two differ by more than rounding;
//     and of the stateful tasks alone no thread has more than one more than another.
//  3. As many tasks as possible stay, on their thread, else in their process (whose disk has their state).
//  4. A task that must move goes where its state is furthest: to a standby, or to a process that ran it before.
//  5. Standbys are on other processes than the active and than each other, and stay where they are.
//
// Balance comes first; given the quotas, the number of moves is the smallest: Σ max(0, had − quota) over threads.
//
// # Two phases
//
// A task that a live member owns is never given to another in the same plan: it is withheld (rule P5: no task is
// granted before its owner has released or lost it). The owner finds it missing from its assignment, commits, closes
// it and joins again; the plan of that rebalance grants it. Ownership is a claim with the generation in which the task
// was granted. Of two claims the later generation wins, so a member that slept through a rebalance loses. If two claim
// the same task in the same generation (a coordinator that lost its log can hand out a number twice), both must
// release it.
//
// # Rolling upgrades
//
// While processes run different versions of the topology, a task goes only to members that know its sub-topology, and
// those that few know are placed first. That comes before balance. A task that nobody knows goes to nobody.
//
// # What is not relied upon
//
// Member ids order nothing that an instance id or a process id can order, because they change with every restart.
// Offsets are hints. A member that nothing is known of (its user data could not be read) is a process of its own
// with one thread and no history; the plan stays valid.
package assign

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/millrace-io/millrace/internal/taskid"
)

// A TopicPartition is a source partition of a task.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// A Task is one unit of work to assign.
type Task struct {
	ID      taskid.ID
	Sources []TopicPartition // what it reads
	// Stateful tasks have a changelog to restore from: they get standbys.
	Stateful bool
}

// A Member is one stream thread as the leader knows it.
type Member struct {
	ID         string // member id, unique in the group
	InstanceID string // group.instance.id, "" for a dynamic member
	ProcessID  string // threads with the same id share a disk; "" if unknown

	// Claims lists the active tasks that the member owns and has not released, granted in Generation or before.
	Claims     []taskid.ID
	Generation int32
	// Previous lists tasks that the member (or its instance id before a restart) ran last. A preference, no claim.
	Previous []taskid.ID
	// Standby lists the tasks of which the member keeps a copy.
	Standby []taskid.ID
	// Offsets tells of which tasks there is local state on the process's disk, and how far it has come (0: unknown).
	Offsets map[taskid.ID]int64
	// Knows lists the sub-topologies that the member can run; empty if unknown, which counts as all.
	Knows []string
}

// Input is all that an assignment depends on. The order of members and tasks has no influence.
type Input struct {
	Members  []Member
	Tasks    []Task
	Standbys int // copies of each stateful task beside the active, as far as there are processes
}

// A Grant is one member's part of the plan. Lists are sorted.
type Grant struct {
	Member  string
	Active  []taskid.ID
	Standby []taskid.ID
	// Release lists claimed tasks that another member waits for.
	Release []taskid.ID
}

// A Move is a task whose active member changes, or would change once its owner has released it.
type Move struct {
	Task     taskid.ID
	From     string // member id, "" if nobody had it
	To       string // member id
	Withheld bool   // granted only after From has released it
	Why      string
}

// String describes the move in one line, for logs and tests.
func (m Move) String() string {
	from := m.From
	if from == "" {
		from = "nobody"
	}
	s := m.Task.String() + ": " + from + " -> " + m.To + ": " + m.Why
	if m.Withheld {
		s += "; withheld until released"
	}
	return s
}

// A Plan says who does what. Grants are sorted by process, instance and member id and hold every member of the input.
type Plan struct {
	Grants []Grant
	Moves  []Move
}

// Of returns the grant of a member.
func (p *Plan) Of(member string) (Grant, bool) {
	i := slices.IndexFunc(p.Grants, func(g Grant) bool { return g.Member == member })
	if i < 0 {
		return Grant{}, false
	}
	return p.Grants[i], true
}

// Assign makes the plan. It does not keep or change anything of the input. Without members the plan is empty.
func Assign(in Input) Plan {
	if len(in.Members) == 0 {
		return Plan{}
	}
	p := newPlanner(in)
	p.readClaims()
	p.findHomes()
	p.setQuotas()
	p.keep()
	p.placeRest()
	p.placeStandbys(in.Standbys)
	return p.plan()
}

// Hash condenses what there is to assign: the tasks with their sources, and the number of standbys. Two processes
// with the same topology and the same topic metadata compute the same hash. It is never 0.
func Hash(tasks []Task, standbys int) uint64 {
	h := fnv.New64a()
	buf := strconv.AppendInt(nil, int64(standbys), 10)
	for _, t := range sortedTasks(tasks) {
		buf = append(buf, 0)
		buf = append(buf, t.ID.String()...)
		buf = strconv.AppendBool(append(buf, 0), t.Stateful)
		for _, tp := range slices.SortedFunc(slices.Values(t.Sources), compareTopicPartition) {
			buf = append(append(buf, 0), tp.Topic...)
			buf = strconv.AppendInt(append(buf, '/'), int64(tp.Partition), 10)
		}
		h.Write(buf)
		buf = buf[:0]
	}
	h.Write(buf)
	return max(h.Sum64(), 1)
}

func compareTopicPartition(a, b TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// sortedTasks returns the tasks by id, each once.
func sortedTasks(tasks []Task) []Task {
	sorted := slices.SortedFunc(slices.Values(tasks), func(a, b Task) int { return a.ID.Compare(b.ID) })
	return slices.CompactFunc(sorted, func(a, b Task) bool { return a.ID == b.ID })
}
