package membershiptest

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/assign"
	"github.com/millrace-io/millrace/membership/codec"
	"github.com/millrace-io/millrace/membership/coordinator"
)

// A Spec describes a node. A node is a process with one thread.
type Spec struct {
	Name     string
	Dynamic  bool
	Endpoint string // default: the name
	Topology uint64
	// Knows lists the sub-topologies that the process has; default: all.
	Knows []string
	// JoinVersion is the version of JoinGroup that the node speaks; default 9.
	JoinVersion int16
	// Slow makes the thread release revoked tasks only when it is told to.
	Slow bool

	SessionTimeout, RebalanceTimeout time.Duration // default 10 s and 30 s
}

// A node is a member with a pretended thread.
type node struct {
	Spec
	env    *Env
	name   string
	member *membership.Member
	inbox  []membership.Event  // what the thread has not handled yet
	busy   *membership.Revoked // what it is releasing; it handles nothing else meanwhile
	holds  map[taskid.ID]bool  // tasks that the thread runs
	dead   bool                // the process has ended: nothing reaches it
	cut    bool                // its requests are lost on the way
}

// Start starts a node, in place of one with the same name; that one runs on as a zombie unless it was killed.
func (e *Env) Start(spec Spec) {
	if spec.Endpoint == "" {
		spec.Endpoint = spec.Name
	}
	if spec.JoinVersion == 0 {
		spec.JoinVersion = 9
	}
	if spec.SessionTimeout == 0 {
		spec.SessionTimeout = 10 * time.Second
	}
	if spec.RebalanceTimeout == 0 {
		spec.RebalanceTimeout = 30 * time.Second
	}
	n := &node{Spec: spec, env: e, name: spec.Name, holds: map[taskid.ID]bool{}}
	if old := e.nodes[spec.Name]; old != nil && !old.dead {
		for e.nodes[old.name] != nil {
			old.name += "'" // a zombie with the same instance id
		}
		e.nodes[old.name] = old
	}
	e.nodes[spec.Name] = n
	cfg := membership.Config{
		Group: Group, HeartbeatInterval: 3 * time.Second, Topics: []string{"in"},
		Subscription: func() codec.Subscription {
			return codec.Subscription{ProcessID: "process " + spec.Name, ClientID: spec.Name, Endpoint: n.Endpoint, TopologyHash: n.Topology, Subtopologies: n.Knows}
		},
		Tasks: n.tasks,
	}
	if !spec.Dynamic {
		cfg.InstanceID = membership.ConsumerClientID(spec.Name, 1)
	}
	n.member = membership.NewMember(cfg)
	n.step(membership.Start{})
}

// tasks are those of the process' topology.
func (n *node) tasks() (tasks []assign.Task) {
	for _, t := range n.env.tasks {
		if len(n.Knows) == 0 || slices.Contains(n.Knows, t.ID.Subtopology) {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// Kill ends a process without a word.
func (e *Env) Kill(name string) {
	n := e.nodes[name]
	n.dead = true
	n.holds = map[taskid.ID]bool{}
}

// Stop ends a process in good order.
func (e *Env) Stop(name string, leave bool) {
	e.nodes[name].step(membership.Stop{Leave: leave})
	e.Kill(name)
}

// Release lets a slow thread finish what it is releasing.
func (e *Env) Release(name string) { e.nodes[name].release() }

func (n *node) release() {
	if n.busy == nil || n.dead {
		return
	}
	done := n.busy.Done()
	for _, id := range n.busy.Tasks {
		delete(n.holds, id)
	}
	n.busy = nil
	n.step(done)
	n.handle()
}

// token is what the thread may commit with: nothing while it has not heard that its tasks are lost.
func (n *node) token() (membership.CommitToken, bool) {
	token, ok := n.member.Token()
	unheard := slices.ContainsFunc(n.inbox, func(e membership.Event) bool { _, lost := e.(membership.Lost); return lost })
	return token, ok && !unheard && !n.dead
}

// step gives an input to the member and carries out what it says.
func (n *node) step(in membership.Input) {
	if n.dead {
		return
	}
	for _, a := range slices.Clone(n.member.Step(n.env.now, in)) {
		switch a := a.(type) {
		case membership.Notify:
			n.env.log("%s: %v", n.name, a.Event)
			n.inbox = append(n.inbox, a.Event)
			n.handle()
		case membership.Log:
			n.env.log("%s: %s", n.name, a.Text)
		case membership.SendHeartbeat:
			n.sendHeartbeat(a)
		case membership.SendSync:
			n.sendSync(a)
		case membership.SendJoin:
			n.env.log("%s: joins as %q: %s", n.name, a.MemberID, a.Reason)
			n.sendJoin(a)
		case membership.SendLeave:
			n.env.log("%s: leaves as %q", n.name, a.MemberID)
			n.sendLeave(a)
		}
	}
}

// handle is the thread: it takes one event after the other, and a revocation takes its time.
func (n *node) handle() {
	for len(n.inbox) > 0 && n.busy == nil {
		e := n.inbox[0]
		n.inbox = n.inbox[1:]
		switch e := e.(type) {
		case membership.Assigned:
			n.assigned(e)
		case membership.Revoked:
			n.busy = &e
			if !n.Slow {
				n.env.wire = append(n.env.wire, message{queue: n.name + " thread", deliver: n.release})
			}
		case membership.Lost, membership.Fatal:
			clear(n.holds)
		}
	}
}

func (n *node) assigned(e membership.Assigned) {
	for id := range n.holds {
		if !slices.Contains(e.Active, id) {
			n.env.Fail("%s holds %v, which is not in its complete assignment %v", n.name, id, e.Active)
		}
	}
	for _, id := range e.Active {
		if len(n.Knows) > 0 && !slices.Contains(n.Knows, id.Subtopology) {
			n.env.Fail("%s was given %v, which its topology does not have", n.name, id)
		}
		n.holds[id] = true
	}
}

// send puts a request on its way. Joins and syncs have a connection of their own.
func (n *node) send(seq uint64, conn string, req kmsg.Request, answer func(kmsg.Response)) {
	e := n.env
	e.nextID++
	id := e.nextID
	queue := n.name + " " + conn
	e.waiting[id] = request{node: n, seq: seq, conn: queue, answer: answer}
	ev := coordinator.Request{ID: id, ClientID: membership.ConsumerClientID(n.Name, 1), Host: "/127.0.0.1", Req: req}
	e.wire = append(e.wire, message{queue: queue, deliver: func() {
		if n.cut {
			delete(e.waiting, id)
			n.step(membership.NoAnswer{Seq: seq, Err: errCut})
			return
		}
		e.toCoordinator(ev)
	}})
}
