package assign

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/millrace-io/millrace/internal/taskid"
)

// inputs draws a group without history: processes with threads, tasks of a few sub-topologies.
func inputs(t *rapid.T, maxThreads int) Input {
	in := Input{Standbys: rapid.IntRange(0, 2).Draw(t, "standbys")}
	for p := range rapid.IntRange(1, 6).Draw(t, "processes") {
		for n := range rapid.IntRange(1, maxThreads).Draw(t, "threads") {
			in.Members = append(in.Members, newMember(p, n, 0))
		}
	}
	for s := range rapid.IntRange(1, 3).Draw(t, "subtopologies") {
		list := tasks(fmt.Sprint("sub", s), rapid.IntRange(0, 12).Draw(t, "partitions"))
		withState := rapid.Bool().Draw(t, "stateful")
		for i := range list {
			list[i].Stateful = withState
		}
		in.Tasks = append(in.Tasks, list...)
	}
	return in
}

func newMember(process, thread, incarnation int) Member {
	instance := fmt.Sprintf("p%d-%d", process, thread)
	return Member{ID: fmt.Sprintf("%s-%d", instance, incarnation), InstanceID: instance, ProcessID: fmt.Sprint("p", process), Offsets: map[taskid.ID]int64{}}
}

// scramble gives members arbitrary claims, memories, copies and offsets: what a leader may meet after crashes.
func scramble(t *rapid.T, in *Input) {
	if len(in.Tasks) == 0 {
		return
	}
	for i := range in.Members {
		m := &in.Members[i]
		m.Generation = int32(rapid.IntRange(1, 3).Draw(t, "generation"))
		m.Claims = someTasks(t, in, "claims")
		m.Previous = someTasks(t, in, "previous")
		m.Standby = someTasks(t, in, "standby")
		for _, id := range someTasks(t, in, "offsets") {
			m.Offsets[id] = rapid.Int64Range(0, 100).Draw(t, "offset")
		}
		if rapid.IntRange(0, 9).Draw(t, "unreadable") == 0 {
			*m = Member{ID: m.ID, InstanceID: m.InstanceID} // user data that cannot be read
		}
	}
}

func someTasks(t *rapid.T, in *Input, name string) (ids []taskid.ID) {
	for range rapid.IntRange(0, 4).Draw(t, name) {
		ids = append(ids, in.Tasks[rapid.IntRange(0, len(in.Tasks)-1).Draw(t, name)].ID)
	}
	return ids
}

// adopt makes the plan everybody's history: the next input after each member has released and joined again.
func adopt(in *Input, plan Plan, generation int32) {
	for i := range in.Members {
		m := &in.Members[i]
		g, _ := plan.Of(m.ID)
		m.Claims, m.Standby, m.Previous, m.Generation = g.Active, g.Standby, nil, generation
		for _, id := range g.Active {
			m.Offsets = map[taskid.ID]int64{id: 10}
		}
	}
}

// settle plays rebalances until no task is withheld and returns the last plan.
func settle(t *rapid.T, in *Input) Plan {
	for generation := int32(10); ; generation++ {
		plan := Assign(*in)
		checkValid(t, *in, plan)
		adopt(in, plan, generation)
		if !slices.ContainsFunc(plan.Moves, func(m Move) bool { return m.Withheld }) {
			return plan
		}
		if generation > 12 {
			t.Fatalf("still withholding after three rebalances:\n%s", describe(plan))
		}
	}
}

// checkValid holds the rules that every plan obeys, whatever the input.
func checkValid(t *rapid.T, in Input, plan Plan) {
	t.Helper()
	if len(plan.Grants) != len(in.Members) {
		t.Fatalf("%d grants for %d members", len(plan.Grants), len(in.Members))
	}
	given := map[taskid.ID]string{}
	for _, g := range plan.Grants {
		for _, id := range g.Active {
			if other, twice := given[id]; twice {
				t.Fatalf("%v is active on %s and %s", id, other, g.Member)
			}
			given[id] = g.Member
		}
	}
	checkBalance(t, in, plan, given)
	checkWithheld(t, in, plan, given)
	checkCopies(t, in, plan, given)
}

// targets says where each task is or will be once it is released.
func targets(plan Plan, given map[taskid.ID]string) map[taskid.ID]string {
	to := map[taskid.ID]string{}
	for id, m := range given {
		to[id] = m
	}
	for _, m := range plan.Moves {
		if m.Withheld {
			to[m.Task] = m.To
		}
	}
	return to
}

func checkBalance(t *rapid.T, in Input, plan Plan, given map[taskid.ID]string) {
	to := targets(plan, given)
	total := len(sortedTasks(in.Tasks))
	if len(to) != total {
		t.Fatalf("%d of %d tasks have a place:\n%s", len(to), total, describe(plan))
	}
	load, process, threads, processLoad := map[string]int{}, map[string]string{}, map[string]int{}, map[string]int{}
	state, allState := map[string]int{}, 0
	for _, task := range sortedTasks(in.Tasks) {
		if task.Stateful {
			state[to[task.ID]]++
			allState++
		}
	}
	for _, m := range in.Members {
		process[m.ID] = processOf(m)
		threads[processOf(m)]++
	}
	for _, m := range to {
		load[m]++
		processLoad[process[m]]++
	}
	for _, m := range in.Members {
		if n := load[m.ID]; n < total/len(in.Members) || n > ceilDiv(total, len(in.Members)) {
			t.Fatalf("thread %s has %d of %d tasks among %d threads", m.ID, n, total, len(in.Members))
		}
		if n := state[m.ID]; n < allState/len(in.Members) || n > ceilDiv(allState, len(in.Members)) {
			t.Fatalf("thread %s has %d of %d stateful tasks among %d threads", m.ID, n, allState, len(in.Members))
		}
	}
	for p, n := range threads {
		if got := processLoad[p]; got < total*n/len(in.Members) || got > ceilDiv(total*n, len(in.Members)) {
			t.Fatalf("process %s has %d tasks with %d of %d threads", p, got, n, len(in.Members))
		}
	}
}

func processOf(m Member) string {
	if m.ProcessID == "" {
		return "member " + m.ID
	}
	return m.ProcessID
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// checkWithheld: a task that somebody claims in the latest generation is given to nobody else (P5), and its owner is
// told to release it; a task that nobody claims is given at once.
func checkWithheld(t *rapid.T, in Input, plan Plan, given map[taskid.ID]string) {
	claims := map[taskid.ID]map[int32][]string{}
	latest := map[taskid.ID]int32{}
	for _, m := range in.Members {
		ids := slices.Clone(m.Claims)
		slices.SortFunc(ids, taskid.ID.Compare)
		for _, id := range slices.Compact(ids) {
			if claims[id] == nil {
				claims[id] = map[int32][]string{}
			}
			claims[id][m.Generation] = append(claims[id][m.Generation], m.ID)
			latest[id] = max(latest[id], m.Generation)
		}
	}
	for _, task := range in.Tasks {
		owners := claims[task.ID][latest[task.ID]]
		to, isGiven := given[task.ID]
		switch {
		case len(owners) == 0 && !isGiven:
			t.Fatalf("%v is withheld though nobody claims it", task.ID)
		case len(owners) == 1 && isGiven && to != owners[0]:
			t.Fatalf("%v is given to %s though %s owns it", task.ID, to, owners[0])
		case len(owners) > 1 && isGiven:
			t.Fatalf("%v is given to %s though %v claim it", task.ID, to, owners)
		}
		for _, owner := range owners {
			g, _ := plan.Of(owner)
			if slices.Contains(g.Release, task.ID) == isGiven {
				t.Fatalf("%v given=%v, but release of %s is %v", task.ID, isGiven, owner, g.Release)
			}
		}
	}
}

// checkCopies: no process holds two replicas, and there are as many as asked for and possible.
func checkCopies(t *rapid.T, in Input, plan Plan, given map[taskid.ID]string) {
	process := map[string]string{}
	processes := map[string]bool{}
	for _, m := range in.Members {
		process[m.ID] = processOf(m)
		processes[processOf(m)] = true
	}
	holds := map[taskid.ID]map[string]bool{}
	copies := map[taskid.ID]int{}
	for id, m := range given {
		holds[id] = map[string]bool{process[m]: true}
	}
	for _, g := range plan.Grants {
		for _, id := range g.Release {
			if holds[id] == nil {
				holds[id] = map[string]bool{}
			}
			holds[id][process[g.Member]] = true
		}
	}
	for _, g := range plan.Grants {
		for _, id := range g.Standby {
			if holds[id][process[g.Member]] {
				t.Fatalf("process %s holds %v twice", process[g.Member], id)
			}
			holds[id][process[g.Member]] = true
			copies[id]++
		}
	}
	for _, task := range in.Tasks {
		_, isGiven := given[task.ID]
		if !isGiven { // withheld: two processes are spoken for
			continue
		}
		want := 0
		if task.Stateful {
			want = min(in.Standbys, len(processes)-1)
		}
		if copies[task.ID] != want {
			t.Fatalf("%v has %d copies, want %d", task.ID, copies[task.ID], want)
		}
	}
}

// While processes run different versions, no task goes to a member that does not know it, and every task that somebody knows
// has a place, whatever the members claim. After the upgrade the plan is as any other.
func TestTasksGoToMembersThatKnowThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputs(t, 3)
		scramble(t, &in)
		for i := range in.Members {
			m := &in.Members[i]
			m.Knows = rapid.SliceOfDistinct(rapid.SampledFrom([]string{"sub0", "sub1", "sub2"}), rapid.ID).Draw(t, "knows")
			m.Claims = slices.DeleteFunc(m.Claims, func(id taskid.ID) bool { return !knows(*m, id) })
		}
		plan := Assign(in)
		for _, g := range plan.Grants {
			i := slices.IndexFunc(in.Members, func(m Member) bool { return m.ID == g.Member })
			for _, id := range slices.Concat(g.Active, g.Standby) {
				if !knows(in.Members[i], id) {
					t.Fatalf("%s got %v and knows %v", g.Member, id, in.Members[i].Knows)
				}
			}
		}
		given := map[taskid.ID]string{}
		for _, g := range plan.Grants {
			for _, id := range g.Active {
				given[id] = g.Member
			}
		}
		to := targets(plan, given)
		for _, task := range in.Tasks {
			known := slices.ContainsFunc(in.Members, func(m Member) bool { return knows(m, task.ID) })
			if _, placed := to[task.ID]; placed != known {
				t.Fatalf("%v has a place: %v, somebody knows it: %v", task.ID, placed, known)
			}
		}
		for i := range in.Members {
			in.Members[i].Knows = nil
		}
		settle(t, &in)
	})
}

func knows(m Member, id taskid.ID) bool {
	return len(m.Knows) == 0 || slices.Contains(m.Knows, id.Subtopology)
}

// Whatever the members claim, the plan is valid, and a few rebalances later everything is granted.
func TestAnyInputGivesAValidPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputs(t, 4)
		scramble(t, &in)
		settle(t, &in)
	})
}

func TestOrderOfInputHasNoInfluence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputs(t, 4)
		scramble(t, &in)
		want := Assign(in)
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		r.Shuffle(len(in.Members), func(i, j int) { in.Members[i], in.Members[j] = in.Members[j], in.Members[i] })
		r.Shuffle(len(in.Tasks), func(i, j int) { in.Tasks[i], in.Tasks[j] = in.Tasks[j], in.Tasks[i] })
		if diff := cmp.Diff(want, Assign(in)); diff != "" {
			t.Fatalf("-want +got\n%s", diff)
		}
	})
}

// A plan fed back without a change moves nothing, copies included; nor does a restart of static members, which come
// back with new member ids and without claims while the leader remembers what they had.
func TestFixpointAndStaticRestart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputs(t, 4)
		scramble(t, &in)
		for i := range in.Members { // unreadable members have no stable process
			in.Members[i].ProcessID = processOf(in.Members[i])
		}
		settle(t, &in)
		before := Assign(in)
		adopt(&in, before, 20)
		if again := Assign(in); len(again.Moves) > 0 || !cmp.Equal(before.Grants, again.Grants, cmpopts.EquateEmpty()) {
			t.Fatalf("first:\n%s\nagain:\n%s", describe(before), describe(again))
		}

		for i := range in.Members {
			m := &in.Members[i]
			if rapid.Bool().Draw(t, "restarts") {
				m.Previous, m.Claims, m.ID = m.Claims, nil, m.ID+"-again"
			}
		}
		after := Assign(in)
		if len(after.Moves) > 0 {
			t.Fatalf("a restart moves tasks:\n%s", describe(after))
		}
	})
}

// A thread that receives a task has given none of the same class away: with the quotas fixed, no plan moves fewer.
func TestNobodyGivesAndTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputs(t, 4)
		settle(t, &in)
		in.Members = slices.DeleteFunc(in.Members, func(m Member) bool {
			return len(in.Members) > 1 && m.ID != in.Members[0].ID && rapid.Bool().Draw(t, "leaves")
		})
		for p := range rapid.IntRange(0, 2).Draw(t, "joins") {
			in.Members = append(in.Members, newMember(100+p, 1, 0))
		}
		withState := map[taskid.ID]bool{}
		for _, task := range in.Tasks {
			withState[task.ID] = task.Stateful
		}
		type half struct {
			member   string
			stateful bool
		}
		plan := Assign(in)
		gives, takes := map[half]bool{}, map[half]bool{}
		for _, m := range plan.Moves {
			takes[half{m.To, withState[m.Task]}] = true
			gives[half{m.From, withState[m.Task]}] = true
		}
		for m := range takes {
			if gives[m] {
				t.Fatalf("%v gives and takes:\n%s", m, describe(plan))
			}
		}
	})
}

// With one thread a process: a join moves no more than the newcomer's share, a leave only what the leaver had; and at
// most one more a thread where that keeps the stateful tasks even.
func TestJoinAndLeaveMoveNoMoreThanTheirShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputs(t, 1)
		settle(t, &in)
		slack := 0
		if slices.ContainsFunc(in.Tasks, func(task Task) bool { return task.Stateful != in.Tasks[0].Stateful }) {
			slack = len(in.Members)
		}
		joined := in
		joined.Members = append(slices.Clone(in.Members), newMember(50, 1, 0))
		if n, limit := len(Assign(joined).Moves), ceilDiv(len(in.Tasks), len(joined.Members)); n > limit+slack {
			t.Fatalf("a join moves %d tasks, its share is %d:\n%s", n, limit, describe(Assign(joined)))
		}
		if len(in.Members) == 1 {
			return
		}
		leaver := rapid.IntRange(0, len(in.Members)-1).Draw(t, "leaver")
		left := in
		left.Members = slices.Delete(slices.Clone(in.Members), leaver, leaver+1)
		moved := 0
		for _, m := range Assign(left).Moves {
			moved += btoi(m.From != "")
		}
		if moved > slack {
			t.Fatalf("a leave moves %d tasks of members that stay:\n%s", moved, describe(Assign(left)))
		}
	})
}
