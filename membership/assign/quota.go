package assign

import (
	"cmp"
	"slices"
)

// setQuotas says how many active tasks each thread gets. Every thread gets the floor of the mean; the tasks that are
// over, fewer than there are threads, go one to a thread: to each process in proportion to its threads, and where
// rounding leaves a choice, to whom it saves a move.
func (p *planner) setQuotas() {
	base := len(p.tasks) / len(p.members)
	over := len(p.tasks) % len(p.members)

	extra := make([]int, len(p.processes)) // tasks over base that the process's threads share
	left := over
	var order []int
	for i := range p.processes {
		extra[i] = over * len(p.processes[i].threads) / len(p.members)
		left -= extra[i]
		// A process whose exact share is whole gets no more than that.
		if over*len(p.processes[i].threads)%len(p.members) > 0 {
			order = append(order, i)
		}
	}
	// left is the sum of the remainders, each below one, so it is smaller than the number of candidates.
	slices.SortStableFunc(order, func(a, b int) int {
		return -cmp.Or(cmp.Compare(p.savesInThread(a, base, extra[a]), p.savesInThread(b, base, extra[b])),
			cmp.Compare(p.savesInProcess(a, base, extra[a]), p.savesInProcess(b, base, extra[b])))
	})
	for _, i := range order[:left] {
		extra[i]++
	}
	for i := range p.processes {
		p.shareQuota(&p.processes[i], base, extra[i])
	}
}

// savesInThread is 1 if one more task would let a thread of process i keep one that it otherwise gives away.
func (p *planner) savesInThread(i, base, extra int) int {
	over := 0
	for _, m := range p.processes[i].threads {
		if p.members[m].homes > base {
			over++
		}
	}
	return btoi(over > extra)
}

// savesInProcess is 1 if one more task would keep one within process i.
func (p *planner) savesInProcess(i, base, extra int) int {
	homes := 0
	for _, m := range p.processes[i].threads {
		homes += p.members[m].homes
	}
	return btoi(homes > base*len(p.processes[i].threads)+extra)
}

// shareQuota gives the extra tasks of a process to those of its threads that have the most.
func (p *planner) shareQuota(proc *process, base, extra int) {
	order := slices.Clone(proc.threads)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.members[b].homes, p.members[a].homes) })
	for n, m := range order {
		p.members[m].quota = base + btoi(n < extra)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
