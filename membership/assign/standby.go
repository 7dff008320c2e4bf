package assign

import (
	"cmp"
	"slices"
)

// placeStandbys puts the given number of copies of every stateful task on processes that do not run it, as far as
// there are any. Copies stay where they are unless a process has more than its share; new ones go to the process with
// the fewest copies a thread, and among equals to the one whose disk has most of the state already.
func (p *planner) placeStandbys(standbys int) {
	standbys = min(standbys, len(p.processes)-1)
	if standbys <= 0 {
		return
	}
	total := 0
	for t := range p.tasks {
		total += standbys * btoi(p.tasks[t].Stateful)
	}
	missing := make([]int, len(p.tasks))
	for t := range p.tasks {
		if p.tasks[t].Stateful {
			missing[t] = standbys - p.keepCopies(&p.tasks[t], standbys, total)
		}
	}
	for t := range p.tasks {
		for range missing[t] {
			if to := p.copyTarget(&p.tasks[t]); to != none {
				p.copyTo(&p.tasks[t], to)
			}
		}
	}
}

// keepCopies lets processes keep the copies of task t that they have, as far as their share of the total allows.
func (p *planner) keepCopies(t *task, standbys, total int) (kept int) {
	for i := range p.processes {
		proc := &p.processes[i]
		share := (total*len(proc.threads) + len(p.members) - 1) / len(p.members)
		if kept < standbys && proc.copies < share && p.copyHolder(t, i) != none && p.mayCopy(t, i) {
			p.copyTo(t, i)
			kept++
		}
	}
	return kept
}

// mayCopy reports whether process i may get a copy of t: it neither runs it, nor is still to release it, nor has one.
func (p *planner) mayCopy(t *task, i int) bool {
	if t.target == none || p.members[t.target].process == i {
		return false
	}
	if slices.ContainsFunc(p.processes[i].threads, func(m int) bool { return !p.members[m].knows(t) }) {
		return false
	}
	for _, holder := range t.holders() {
		if p.members[holder].process == i {
			return false
		}
	}
	return !slices.ContainsFunc(p.processes[i].threads, func(m int) bool {
		return slices.Contains(p.members[m].standby, t.ID)
	})
}

// copyTarget returns the process that a further copy of t is best placed on, or none.
func (p *planner) copyTarget(t *task) int {
	best := none
	for i := range p.processes {
		if p.mayCopy(t, i) && (best == none || p.betterForCopy(t, i, best)) {
			best = i
		}
	}
	return best
}

func (p *planner) betterForCopy(t *task, a, b int) bool {
	pa, pb := &p.processes[a], &p.processes[b]
	return cmp.Or(
		// copies per thread, compared without division
		cmp.Compare(pb.copies*len(pa.threads), pa.copies*len(pb.threads)),
		cmp.Compare(pa.offsets[t.ID], pb.offsets[t.ID]),
	) > 0
}

// copyHolder returns the thread of process i that keeps a copy of t now, or none.
func (p *planner) copyHolder(t *task, i int) int {
	for _, m := range p.processes[i].threads {
		if slices.Contains(p.members[m].Standby, t.ID) {
			return m
		}
	}
	return none
}

// copyTo puts a copy of t on process i: on the thread that has it, else on the one with the least to do.
func (p *planner) copyTo(t *task, i int) {
	proc := &p.processes[i]
	to := p.copyHolder(t, i)
	if to == none {
		to = slices.MinFunc(proc.threads, func(a, b int) int {
			return cmp.Compare(p.members[a].active()+p.members[a].copies, p.members[b].active()+p.members[b].copies)
		})
	}
	m := &p.members[to]
	m.standby = append(m.standby, t.ID)
	m.copies++
	proc.copies++
}
