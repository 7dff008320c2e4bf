package membershiptest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/codec"
	"github.com/millrace-io/millrace/membership/coordinator"
)

// Run runs one script file: see testdata/README.md for the language.
func Run(t *testing.T, file string) {
	var env *Env
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "cluster" {
			env = newFromScript(t, d)
			return "ok"
		}
		if env == nil {
			d.Fatalf(t, "the script must begin with the command cluster")
		}
		env.Fail = t.Fatalf
		env.command(t, d)
		env.Settle()
		if out := env.Take(); out != "" {
			return out
		}
		return "ok"
	})
}

func newFromScript(t *testing.T, d *datadriven.TestData) *Env {
	cfg := coordinator.Config{InitialRebalanceDelay: -1}
	tasks := 4
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "tasks":
			arg.Scan(t, 0, &tasks)
		case "delay":
			cfg.InitialRebalanceDelay = duration(t, d, arg.Vals[0])
		case "profile":
			if arg.Vals[0] == "kip345" {
				cfg.Profile = coordinator.KIP345
			}
		default:
			d.Fatalf(t, "unknown argument %s", arg.Key)
		}
	}
	env := New(cfg, t.Fatalf)
	env.SetTasks(tasks, 0)
	return env
}

func duration(t *testing.T, d *datadriven.TestData, s string) time.Duration {
	v, err := time.ParseDuration(s)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return v
}

// command carries out one command of a script.
func (e *Env) command(t *testing.T, d *datadriven.TestData) {
	word := func(i int) string {
		if i >= len(d.CmdArgs) {
			d.Fatalf(t, "%s needs an argument", d.Cmd)
		}
		return d.CmdArgs[i].Key
	}
	named := func() *node {
		n := e.nodes[word(0)]
		if n == nil {
			d.Fatalf(t, "there is no node %s", word(0))
		}
		return n
	}
	switch d.Cmd {
	case "start":
		e.Start(parseSpec(t, d))
	case "restart":
		old := named()
		spec := old.Spec
		override(t, d, &spec)
		e.Kill(old.name)
		e.Start(spec)
	case "kill":
		e.Kill(named().name)
	case "stop":
		e.Stop(named().name, len(d.CmdArgs) > 1 && word(1) == "leave")
	case "advance":
		e.Advance(duration(t, d, word(0)))
	case "tasks":
		var n, u int
		if _, err := fmt.Sscan(word(0), &n); err != nil {
			d.Fatalf(t, "%v", err)
		}
		d.MaybeScanArgs(t, "u", &u)
		e.SetTasks(n, u)
		if d.HasArg("noticed") {
			e.TellTasks()
		}
	case "rejoin":
		named().step(membership.Rejoin{Reason: "the test wants it"})
	case "release":
		e.Release(named().name)
	case "cut":
		named().cut = true
	case "heal":
		named().cut = false
	case "commit":
		named().commit()
	case "remove":
		var ids []string
		for _, arg := range d.CmdArgs {
			ids = append(ids, membership.ConsumerClientID(arg.Key, 1))
		}
		e.remove(ids...)
	case "group":
		e.describe()
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
}

func parseSpec(t *testing.T, d *datadriven.TestData) Spec {
	spec := Spec{Name: d.CmdArgs[0].Key}
	override(t, d, &spec)
	return spec
}

// override applies the arguments after the name.
func override(t *testing.T, d *datadriven.TestData, spec *Spec) {
	for _, arg := range d.CmdArgs[1:] {
		switch arg.Key {
		case "dynamic":
			spec.Dynamic = true
		case "slow":
			spec.Slow = true
		case "endpoint":
			spec.Endpoint = arg.Vals[0]
		case "topology":
			arg.Scan(t, 0, &spec.Topology)
		case "knows":
			spec.Knows = arg.Vals
		case "join":
			arg.Scan(t, 0, &spec.JoinVersion)
		case "session":
			spec.SessionTimeout = duration(t, d, arg.Vals[0])
		case "rebalance":
			spec.RebalanceTimeout = duration(t, d, arg.Vals[0])
		default:
			d.Fatalf(t, "unknown argument %s", arg.Key)
		}
	}
}

// remove is an operator's one LeaveGroup by instance ids.
func (e *Env) remove(ids ...string) {
	req := leaveRequest("", nil)
	req.Members = nil
	for _, id := range ids {
		member := kmsg.NewLeaveGroupRequestMember()
		member.InstanceID = kmsg.StringPtr(id)
		req.Members = append(req.Members, member)
	}
	e.nextID++
	e.waiting[e.nextID] = request{answer: func(resp kmsg.Response) {
		for _, m := range resp.(*kmsg.LeaveGroupResponse).Members {
			e.log("removed %s: %v", *m.InstanceID, membership.Code(m.ErrorCode))
		}
	}}
	e.toCoordinator(coordinator.Request{ID: e.nextID, ClientID: "admin", Host: "/127.0.0.1", Req: req})
}

// describe shows the group as the coordinator and as the threads see it.
func (e *Env) describe() {
	g, ok := e.coordinator.Group(Group)
	if !ok {
		e.log("no group")
		return
	}
	e.log("%s generation=%d leader=%s", g.State, g.Generation, g.Leader)
	for _, m := range g.Members {
		_, a, err := codec.DecodeGrant(m.Assignment)
		if err != nil {
			e.Fail("assignment of %s: %v", m.ID, err)
		}
		e.log("  %s assigned=%v", m.ID, a.Active)
	}
	for _, n := range e.sorted() {
		if n.dead {
			continue
		}
		holds := slices.SortedFunc(maps.Keys(n.holds), taskid.ID.Compare)
		e.log("  thread of %s: %s holds=%v", n.name, n.member.State(), holds)
	}
}
