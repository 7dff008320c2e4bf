package assign

import (
	"cmp"
	"slices"
)

// A class is a kind of task that is balanced by itself, because its members tend to weigh the same.
type class int

const (
	stateful class = iota
	stateless
	classes
)

func classOf(t *task) class {
	if t.Stateful {
		return stateful
	}
	return stateless
}

// setQuotas says how many active tasks of each class each thread gets. All tasks are shared out evenly, and within
// that the stateful ones; the stateless ones fill up.
func (p *planner) setQuotas() {
	var count [classes]int
	homes := make([][classes]int, len(p.members))
	for t := range p.tasks {
		c := classOf(&p.tasks[t])
		count[c]++
		if home := p.tasks[t].home; home != none {
			homes[home][c]++
		}
	}
	every := make([]int, len(p.members))
	withState := make([]int, len(p.members))
	unlimited := make([]int, len(p.members))
	for i, h := range homes {
		every[i], withState[i], unlimited[i] = h[stateful]+h[stateless], h[stateful], len(p.tasks)
	}
	total := p.share(len(p.tasks), every, unlimited, nil)
	part := p.share(count[stateful], withState, total, homes)
	for i := range p.members {
		p.members[i].quota = [classes]int{stateful: part[i], stateless: total[i] - part[i]}
	}
}

// share divides n tasks among the threads. Every thread gets the floor of the mean; the tasks that are over, fewer
// than there are threads, go one to a thread: to each process in proportion to its threads, and where rounding leaves
// a choice, to whom it saves a move. homes counts the tasks that each thread would keep; no thread gets more than its
// limit, which is at least the floor. others, if given, tells what else a thread would keep within its limit.
func (p *planner) share(n int, homes, limit []int, others [][classes]int) []int {
	s := sharing{planner: p, base: n / len(p.members), homes: homes, limit: limit, others: others, extra: make([]int, len(p.processes))}
	over := n % len(p.members)
	left := over
	var rounded, full []int // processes whose exact share is no whole number, and the others
	for i := range p.processes {
		exact := over * len(p.processes[i].threads)
		s.extra[i] = min(exact/len(p.members), s.room(i))
		left -= s.extra[i]
		if exact%len(p.members) > 0 {
			rounded = append(rounded, i)
		} else {
			full = append(full, i)
		}
	}
	slices.SortStableFunc(rounded, func(a, b int) int {
		return -cmp.Or(
			cmp.Compare(s.savesInThread(a), s.savesInThread(b)),
			cmp.Compare(s.savesInProcess(a), s.savesInProcess(b)),
			cmp.Compare(s.displacesNothing(a), s.displacesNothing(b)),
		)
	})
	// One more for a rounded share is enough unless limits are in the way; then whoever has room takes the rest.
	for left > 0 {
		for _, i := range rounded {
			if left > 0 && s.extra[i] < s.room(i) {
				s.extra[i]++
				left--
			}
		}
		rounded = append(rounded, full...)
	}
	return s.quotas()
}

// A sharing is one run of [planner.share].
type sharing struct {
	*planner
	base         int
	homes, limit []int // by member
	others       [][classes]int
	extra        []int // tasks over base, by process
}

// displaces reports whether one more task would make member m give away a task of another class.
func (s *sharing) displaces(m int) bool {
	return s.others != nil && s.others[m][stateless] > s.limit[m]-s.base-1
}

// displacesNothing is 1 if process i has a thread that can take one more task without giving one away.
func (s *sharing) displacesNothing(i int) int {
	free := 0
	for _, m := range s.processes[i].threads {
		free += btoi(s.limit[m] > s.base && !s.displaces(m))
	}
	return btoi(free > s.extra[i])
}

// room is how many threads of process i may get more than the floor.
func (s *sharing) room(i int) (n int) {
	for _, m := range s.processes[i].threads {
		n += btoi(s.limit[m] > s.base)
	}
	return n
}

// savesInThread is 1 if one more task would let a thread of process i keep one that it otherwise gives away.
func (s *sharing) savesInThread(i int) int {
	over := 0
	for _, m := range s.processes[i].threads {
		over += btoi(s.homes[m] > s.base && s.limit[m] > s.base)
	}
	return btoi(over > s.extra[i])
}

// savesInProcess is 1 if one more task would keep one within process i.
func (s *sharing) savesInProcess(i int) int {
	homes := 0
	for _, m := range s.processes[i].threads {
		homes += s.homes[m]
	}
	return btoi(homes > s.base*len(s.processes[i].threads)+s.extra[i])
}

// quotas gives the extra tasks of each process to those of its threads that have the most.
func (s *sharing) quotas() []int {
	quotas := make([]int, len(s.members))
	for i, proc := range s.processes {
		order := slices.Clone(proc.threads)
		slices.SortStableFunc(order, func(a, b int) int {
			return -cmp.Or(
				cmp.Compare(btoi(s.limit[a] > s.base), btoi(s.limit[b] > s.base)),
				cmp.Compare(s.homes[a], s.homes[b]),
				cmp.Compare(btoi(s.displaces(b)), btoi(s.displaces(a))),
			)
		})
		for n, m := range order {
			quotas[m] = s.base + btoi(n < s.extra[i])
		}
	}
	return quotas
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
