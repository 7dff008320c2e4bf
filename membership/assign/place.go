package assign

import (
	"cmp"
	"slices"
	"strconv"
)

// keep lets every thread keep as many of its tasks as its quotas allow: owned ones before merely remembered ones,
// because moving those costs a second rebalance, then those with the most state.
func (p *planner) keep() {
	homes := make([][classes][]*task, len(p.members))
	for t := range p.tasks {
		if task := &p.tasks[t]; task.home != none {
			list := &homes[task.home][classOf(task)]
			*list = append(*list, task)
		}
	}
	for i := range homes {
		for c, tasks := range homes[i] {
			p.keepSome(i, p.members[i].quota[c], tasks)
		}
	}
}

// keepSome lets member i keep at most quota of the tasks.
func (p *planner) keepSome(i, quota int, tasks []*task) {
	offsets := p.processes[p.members[i].process].offsets
	slices.SortStableFunc(tasks, func(a, b *task) int {
		return -cmp.Or(cmp.Compare(btoi(a.owner == i), btoi(b.owner == i)), cmp.Compare(offsets[a.ID], offsets[b.ID]))
	})
	for n, t := range tasks {
		if !p.members[i].knows(t) {
			t.why = "its topology has no " + t.ID.Subtopology
			continue
		}
		if n < quota {
			p.give(t, i)
			continue
		}
		t.why = "it had " + strconv.Itoa(len(tasks)) + " where its share is " + strconv.Itoa(quota)
	}
}

// placeRest gives the tasks that did not stay to threads that have room: those first that few members know, because they
// have the least choice, then those with the most state, since they lose most by a bad place.
func (p *planner) placeRest() {
	var rest []*task
	for t := range p.tasks {
		if p.tasks[t].target == none {
			rest = append(rest, &p.tasks[t])
		}
	}
	slices.SortStableFunc(rest, func(a, b *task) int {
		return cmp.Or(cmp.Compare(p.knowing(a), p.knowing(b)), cmp.Compare(p.furthest(b), p.furthest(a)))
	})
	for _, t := range rest {
		best := none
		for i := range p.members {
			if p.members[i].spare(classOf(t)) > 0 && p.members[i].knows(t) && (best == none || p.better(t, i, best)) {
				best = i
			}
		}
		if best == none {
			best = p.leastLoaded(t)
		}
		if best != none {
			t.why = p.reason(t, best)
			p.give(t, best)
		}
	}
}

// leastLoaded returns the member to burden beyond its share with task t, because no other one that knows it has room; none
// if nobody knows it.
func (p *planner) leastLoaded(t *task) int {
	best := none
	for i := range p.members {
		if p.members[i].knows(t) && (best == none || p.members[i].active() < p.members[best].active()) {
			best = i
		}
	}
	return best
}

// knowing is how many members know task t.
func (p *planner) knowing(t *task) (n int) {
	for i := range p.members {
		n += btoi(p.members[i].knows(t))
	}
	return n
}

// furthest ranks tasks by the largest local state that any process reported.
func (p *planner) furthest(t *task) int64 {
	var sum int64
	for i := range p.processes {
		sum = max(sum, p.processes[i].offsets[t.ID])
	}
	return sum
}

// better reports whether task t is better placed on member a than on member b, both having room. Equal members are
// taken in their order.
func (p *planner) better(t *task, a, b int) bool {
	ma, mb := &p.members[a], &p.members[b]
	return cmp.Or(
		cmp.Compare(btoi(p.atHome(t, a)), btoi(p.atHome(t, b))),
		cmp.Compare(p.processes[ma.process].offsets[t.ID], p.processes[mb.process].offsets[t.ID]),
		cmp.Compare(btoi(slices.Contains(ma.Standby, t.ID)), btoi(slices.Contains(mb.Standby, t.ID))),
		// Spread the tasks of one sub-topology: they tend to weigh the same.
		cmp.Compare(mb.bySub[t.ID.Subtopology], ma.bySub[t.ID.Subtopology]),
		cmp.Compare(ma.spare(classOf(t)), mb.spare(classOf(t))),
	) > 0
}

// atHome reports whether member i is in the process where the task ran last.
func (p *planner) atHome(t *task, i int) bool {
	return t.home != none && p.members[t.home].process == p.members[i].process
}

// reason says why task t goes to member i, after why it left its home.
func (p *planner) reason(t *task, i int) string {
	why := t.why
	if why == "" {
		why = "nobody had it"
	}
	offset := p.processes[p.members[i].process].offsets[t.ID] - 1
	switch {
	case p.atHome(t, i):
		return why + ", another thread of the process has room"
	case offset > 0:
		return why + ", the new process has its state up to " + strconv.FormatInt(offset, 10)
	case offset == 0:
		return why + ", the new process has local state of it"
	default:
		return why + ", the new member has room"
	}
}
