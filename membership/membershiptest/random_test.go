package membershiptest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/coordinator"
)

// TestRandomHistories plays random histories of starts, kills, cuts, slow threads and reordered messages. At every
// step P5 holds (Env checks it); when the world is quiet again, the group is stable and every task runs exactly once.
func TestRandomHistories(t *testing.T) {
	for _, profile := range []coordinator.Profile{coordinator.Kafka, coordinator.KIP345} {
		t.Run(profile.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { history(t, profile) })
		})
	}
}

func history(t *rapid.T, profile coordinator.Profile) {
	e := New(coordinator.Config{Profile: profile, InitialRebalanceDelay: -1}, t.Fatalf)
	e.Fail = func(format string, args ...any) {
		t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), e.Take())
	}
	e.Pick = func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "queue") }
	e.SetTasks(rapid.IntRange(0, 9).Draw(t, "tasks"), 0)
	actions := []string{"start", "start", "deliver", "deliver", "advance", "advance", "kill", "stop", "cut", "heal", "release", "rejoin", "notice", "commit", "remove"}
	changes := rapid.Bool().Draw(t, "tasks change")
	if changes {
		actions = append(actions, "tasks")
	}
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		e.mischief(t, actions)
	}
	e.calm(changes)
	e.checkCalm()
}

// mischief does one thing that can happen to a cluster.
func (e *Env) mischief(t *rapid.T, actions []string) {
	name := fmt.Sprint("n", rapid.IntRange(0, 3).Draw(t, "node"))
	n := e.nodes[name]
	what := rapid.SampledFrom(actions).Draw(t, "what")
	if n == nil || n.dead {
		if what == "start" || what == "kill" {
			e.log("-- start %s", name)
			spec := Spec{Name: name, Dynamic: name == "n3", Slow: rapid.Bool().Draw(t, "slow"), JoinVersion: rapid.Int16Range(8, 9).Draw(t, "join")}
			if rapid.Bool().Draw(t, "long session") {
				spec.SessionTimeout, spec.RebalanceTimeout = time.Minute, 8*time.Second
			}
			e.Start(spec)
			return
		}
		what = "deliver"
	}
	e.log("-- %s %s", what, name)
	switch what {
	case "start": // a second process with the same instance id, or a quick restart
		if rapid.Bool().Draw(t, "restart") {
			e.Kill(name)
		}
		e.Start(n.Spec)
	case "deliver":
		for range rapid.IntRange(1, 6).Draw(t, "messages") {
			e.DeliverOne()
		}
	case "advance":
		e.Advance(time.Duration(rapid.IntRange(100, 12_000).Draw(t, "ms")) * time.Millisecond)
	case "kill":
		e.Kill(name)
	case "stop":
		e.Stop(name, rapid.Bool().Draw(t, "leave"))
	case "cut", "heal":
		n.cut = what == "cut"
	case "release":
		e.Release(name)
	case "tasks":
		e.SetTasks(rapid.IntRange(0, 9).Draw(t, "tasks"), 0)
	case "notice":
		n.step(membership.InputsChanged{})
	case "rejoin":
		n.step(membership.Rejoin{Reason: "random"})
	case "commit":
		n.commit()
	case "remove":
		e.remove(membership.ConsumerClientID(name, 1))
	}
}

// calm lets the world come to rest: the network heals, threads release at once, and time passes until the dead have
// expired. If there was a change of tasks, all notice at the end; otherwise the group has to get there by itself.
func (e *Env) calm(notice bool) {
	for _, n := range e.sorted() {
		n.cut, n.Slow = false, false
		n.release()
	}
	e.Advance(5 * time.Minute)
	if notice {
		e.TellTasks()
	}
	e.Advance(2 * time.Minute)
}

func (e *Env) checkCalm() {
	owner := map[taskid.ID]string{}
	alive := 0
	for _, n := range e.sorted() {
		switch state := n.member.State(); {
		case n.dead || state == membership.Fenced:
		case state != membership.Stable:
			e.Fail("%s is %s", n.name, state)
		default:
			alive++
			for id := range n.holds {
				if other, taken := owner[id]; taken {
					e.Fail("%v runs on %s and %s", id, other, n.name)
				}
				owner[id] = n.name
			}
		}
	}
	if alive == 0 {
		return
	}
	for _, task := range e.tasks {
		if owner[task.ID] == "" {
			e.Fail("%v runs nowhere", task.ID)
		}
	}
	if len(owner) != len(e.tasks) {
		e.Fail("%d tasks run, there are %d", len(owner), len(e.tasks))
	}
	if g, _ := e.coordinator.Group(Group); g.State != "Stable" || len(g.Members) != alive {
		e.Fail("the group is %s with %d members, %d are alive", g.State, len(g.Members), alive)
	}
}

// The checks above must be able to fail.
func TestBrokenInvariantsAreReported(t *testing.T) {
	var reports []string
	e := New(coordinator.Config{InitialRebalanceDelay: -1}, func(format string, args ...any) {
		reports = append(reports, fmt.Sprintf(format, args...))
	})
	e.SetTasks(2, 0)
	e.Start(Spec{Name: "a"})
	e.Start(Spec{Name: "b"})
	e.Advance(20 * time.Second)
	e.checkCalm()
	if len(reports) > 0 {
		t.Fatalf("a sound group is reported: %q", reports)
	}
	for id := range e.nodes["a"].holds {
		e.nodes["b"].holds[id] = true
	}
	e.checkOwners()
	if !slices.ContainsFunc(reports, func(s string) bool { return s == "P5 is broken: t_0 is held by a and b" }) {
		t.Errorf("a task held twice is not reported: %q", reports)
	}
	reports = nil
	clear(e.nodes["b"].holds)
	e.checkCalm()
	if !slices.Contains(reports, "t_1 runs nowhere") {
		t.Errorf("a task that runs nowhere is not reported: %q", reports)
	}
}
