// Package membershiptest runs real members against the real coordinator: both are pure machines, so a script of
// virtual time and a message queue is all the network they need. It is a test library, internal to this project.
//
// An [Env] holds one coordinator and any number of nodes, each a member with a pretended stream thread. Messages wait
// in a queue, one for each connection and direction; [Env.Settle] delivers them until none is left, [Env.Advance] lets
// time pass from deadline to deadline. After every delivery the environment checks rule P5: no two members
// whose commits the coordinator accepts hold the same task.
//
// testdata/README.md describes the script language.
package membershiptest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/assign"
	"github.com/millrace-io/millrace/membership/coordinator"
)

// Group is the one group of an environment.
const Group = "app"

// An Env is one cluster in a test. It belongs to one goroutine.
type Env struct {
	// Pick chooses one of n queues to deliver from; nil takes the first, so that a script is deterministic.
	Pick func(n int) int
	// Fail reports a broken invariant.
	Fail func(format string, args ...any)

	now         time.Time
	coordinator *coordinator.Machine
	nodes       map[string]*node
	tasks       []assign.Task
	ids         int // member ids given out

	wire    []message
	nextID  uint64
	waiting map[uint64]request // sent and not yet answered
	out     strings.Builder    // what happened since the last Take
}

// A request is what a node waits for.
type request struct {
	node   *node
	seq    uint64
	conn   string
	answer func(kmsg.Response) // for requests that are not the membership's own
}

// A message is on its way: to the coordinator if node is nil.
type message struct {
	queue   string // messages of one queue stay in order
	deliver func()
}

// New returns an environment without nodes. The coordinator answers for the group at once.
func New(cfg coordinator.Config, fail func(string, ...any)) *Env {
	e := &Env{Fail: fail, now: time.Unix(1_000_000_000, 0).UTC(), nodes: map[string]*node{}, waiting: map[uint64]request{}}
	cfg.OffsetsPartitions = 1
	// As long as a UUID, because members recognise their own former ids by the length.
	cfg.NewID = func(string) string { e.ids++; return fmt.Sprintf("%036d", e.ids) }
	e.coordinator = coordinator.New(cfg)
	e.toCoordinator(coordinator.Loaded{})
	e.toCoordinator(coordinator.TopicChanged{Topic: "in", Partitions: 1000})
	return e
}

// SetTasks changes what there is to assign: n tasks of the sub-topology t and as many of u as u says. Nobody is told.
func (e *Env) SetTasks(n, u int) {
	e.tasks = nil
	for i := range n + u {
		id := taskid.ID{Subtopology: "t", Partition: int32(i)}
		if i >= n {
			id = taskid.ID{Subtopology: "u", Partition: int32(i - n)}
		}
		e.tasks = append(e.tasks, assign.Task{ID: id, Sources: []assign.TopicPartition{{Topic: "in", Partition: int32(i)}}, Stateful: true})
	}
}

// TellTasks lets every process notice that there is something else to assign.
func (e *Env) TellTasks() {
	for _, n := range e.sorted() {
		if !n.dead {
			n.step(membership.InputsChanged{})
		}
	}
}

// Settle delivers messages until none is left. Time does not pass.
func (e *Env) Settle() {
	for len(e.wire) > 0 {
		heads := e.heads()
		i := 0
		if e.Pick != nil {
			i = e.Pick(len(heads))
		}
		e.deliver(heads[i])
	}
}

// DeliverOne delivers one message, if there is any.
func (e *Env) DeliverOne() {
	if heads := e.heads(); len(heads) > 0 {
		e.deliver(heads[e.Pick(len(heads))])
	}
}

func (e *Env) deliver(i int) {
	m := e.wire[i]
	e.wire = slices.Delete(e.wire, i, i+1)
	m.deliver()
	e.checkOwners()
}

// heads lists the indexes of the first message of each queue.
func (e *Env) heads() (heads []int) {
	seen := map[string]bool{}
	for i, m := range e.wire {
		if !seen[m.queue] {
			seen[m.queue] = true
			heads = append(heads, i)
		}
	}
	return heads
}

// Advance lets time pass, from deadline to deadline, and settles at each.
func (e *Env) Advance(d time.Duration) {
	end := e.now.Add(d)
	e.Settle()
	for steps := 0; ; steps++ {
		if steps > 100_000 {
			e.Fail("the deadlines do not move on at %v", e.now)
			return
		}
		at, wake := e.nextDeadline()
		if wake == nil || at.After(end) {
			break
		}
		if at.After(e.now) {
			e.now = at
		}
		wake()
		e.Settle()
	}
	e.now = end
	e.toCoordinator(coordinator.Tick{})
	e.Settle()
}

// nextDeadline returns the earliest deadline and how to serve it.
func (e *Env) nextDeadline() (first time.Time, wake func()) {
	if at, ok := e.coordinator.NextDeadline(); ok {
		first, wake = at, func() { e.toCoordinator(coordinator.Tick{}) }
	}
	for _, n := range e.sorted() {
		if at, ok := n.member.NextDeadline(); ok && !n.dead && (wake == nil || at.Before(first)) {
			first, wake = at, func() { n.step(membership.Tick{}) }
		}
	}
	return first, wake
}

// sorted returns the nodes by name.
func (e *Env) sorted() []*node {
	list := make([]*node, 0, len(e.nodes))
	for _, n := range e.nodes {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	return list
}

// toCoordinator steps the coordinator and sends its answers on their way. Appends succeed at once.
func (e *Env) toCoordinator(ev coordinator.Event) {
	var appended []uint64
	for _, a := range e.coordinator.Step(e.now, ev) {
		switch a := a.(type) {
		case *coordinator.Reply:
			e.reply(a.ID, a.Resp)
		case *coordinator.Append:
			appended = append(appended, a.ID)
		}
	}
	for _, id := range appended {
		e.toCoordinator(coordinator.Appended{ID: id})
	}
}

func (e *Env) reply(id uint64, resp kmsg.Response) {
	r, ok := e.waiting[id]
	if !ok {
		e.Fail("the coordinator answered request %d twice", id)
		return
	}
	delete(e.waiting, id)
	if r.answer != nil {
		r.answer(resp)
		return
	}
	in := inputOf(r.seq, resp)
	e.wire = append(e.wire, message{queue: r.conn + " answers", deliver: func() { r.node.step(in) }})
}

// checkOwners holds P5 for all members whose commits the coordinator accepts. A member that was replaced or removed, or
// whose generation is over, and that has not heard of it yet may still hold its tasks.
func (e *Env) checkOwners() {
	g, _ := e.coordinator.Group(Group)
	known := map[string]bool{}
	for _, m := range g.Members {
		known[m.ID] = true
	}
	owner := map[taskid.ID]string{}
	for _, n := range e.sorted() {
		token, ok := n.token()
		if !ok || !known[token.MemberID] || token.Generation != g.Generation {
			continue
		}
		for id := range n.holds {
			if other, taken := owner[id]; taken {
				e.Fail("P5 is broken: %v is held by %s and %s", id, other, n.name)
			}
			owner[id] = n.name
		}
	}
}

var longID = regexp.MustCompile(`-0{20,}([0-9]+)`)

// log adds a line to the script's output, with member ids cut to "<instance>#<n>".
func (e *Env) log(format string, args ...any) {
	line := longID.ReplaceAllString(fmt.Sprintf(format, args...), "#$1")
	e.out.WriteString(strings.ReplaceAll(line, "-StreamThread-1-consumer", ""))
	e.out.WriteByte('\n')
}

// Take returns what happened since it was last called.
func (e *Env) Take() string {
	s := e.out.String()
	e.out.Reset()
	return s
}
