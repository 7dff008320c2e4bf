package assign

import (
	"cmp"
	"slices"

	"github.com/millrace-io/millrace/internal/taskid"
)

// none stands for "no member" and "no process" in the planner's indexes.
const none = -1

// A planner holds one run of [Assign]. Members, processes and tasks are indexes into sorted lists; each field below
// is written by the step named with it and only read afterwards.
type planner struct {
	members   []thread
	processes []process
	tasks     []task
	index     map[taskid.ID]int
}

// A thread is a member in the making of a plan.
type thread struct {
	Member
	process int
	quota   [classes]int   // setQuotas
	load    [classes]int   // keep, placeRest: active tasks so far
	bySub   map[string]int // keep, placeRest: active tasks so far per sub-topology
	copies  int            // placeStandbys
	standby []taskid.ID    // placeStandbys
}

// spare is how many tasks of a class the thread has room for.
func (t *thread) spare(c class) int { return t.quota[c] - t.load[c] }

// knows reports whether the thread's topology has the task.
func (t *thread) knows(task *task) bool {
	return len(t.Knows) == 0 || slices.Contains(t.Knows, task.ID.Subtopology)
}

// active is how many active tasks the thread has so far.
func (t *thread) active() int { return t.load[stateful] + t.load[stateless] }

// A process is the threads that share a disk.
type process struct {
	id      string
	threads []int
	// offsets is one more than the furthest that any of its threads reported, so that local state of which nobody
	// knows how far it has come counts for something.
	offsets map[taskid.ID]int64
	copies  int // placeStandbys
}

// A task is a task in the making of a plan.
type task struct {
	Task
	owner     int    // readClaims: the member whose claim holds, or none
	contested []int  // readClaims: members that claim it in the same, latest generation
	home      int    // findHomes: where it should stay
	target    int    // keep, placeRest
	why       string // keep, placeRest: the reason, if it did not stay at home
}

func newPlanner(in Input) *planner {
	p := &planner{index: map[taskid.ID]int{}}
	for _, m := range in.Members {
		if m.ProcessID == "" {
			m.ProcessID = "member " + m.ID // unknown: a process of its own
		}
		p.members = append(p.members, thread{Member: m, bySub: map[string]int{}})
	}
	slices.SortFunc(p.members, func(a, b thread) int {
		return cmp.Or(cmp.Compare(a.ProcessID, b.ProcessID), cmp.Compare(a.InstanceID, b.InstanceID), cmp.Compare(a.ID, b.ID))
	})
	for i := range p.members {
		p.joinProcess(i)
	}
	for i, t := range sortedTasks(in.Tasks) {
		p.tasks = append(p.tasks, task{Task: t, owner: none, home: none, target: none})
		p.index[t.ID] = i
	}
	return p
}

// joinProcess adds member i to its process; members are sorted by process.
func (p *planner) joinProcess(i int) {
	m := &p.members[i]
	if n := len(p.processes); n == 0 || p.processes[n-1].id != m.ProcessID {
		p.processes = append(p.processes, process{id: m.ProcessID, offsets: map[taskid.ID]int64{}})
	}
	m.process = len(p.processes) - 1
	proc := &p.processes[m.process]
	proc.threads = append(proc.threads, i)
	for id, sum := range m.Offsets {
		proc.offsets[id] = max(proc.offsets[id], max(sum, 0)+1)
	}
}

// readClaims finds the owner of each task: the claim of the latest generation, if it is the only one.
func (p *planner) readClaims() {
	for i := range p.members {
		for _, id := range p.members[i].Claims {
			t, ok := p.index[id]
			if !ok {
				continue // a task that no longer exists: its owner will find it missing from its assignment
			}
			p.claim(&p.tasks[t], i)
		}
	}
}

func (p *planner) claim(t *task, i int) {
	held := t.owner
	if len(t.contested) > 0 {
		held = t.contested[0]
	}
	switch {
	case held == i || slices.Contains(t.contested, i):
	case held == none || p.members[i].Generation > p.members[held].Generation:
		t.owner, t.contested = i, nil
	case p.members[i].Generation == p.members[held].Generation && len(t.contested) > 0:
		t.contested = append(t.contested, i)
	case p.members[i].Generation == p.members[held].Generation:
		t.owner, t.contested = none, []int{held, i}
	}
}

// findHomes decides where each task should stay: with its owner, else with who ran it last.
func (p *planner) findHomes() {
	for i := range p.members {
		for _, id := range p.members[i].Previous {
			if t, ok := p.index[id]; ok && p.tasks[t].home == none {
				p.tasks[t].home = i
			}
		}
	}
	for t := range p.tasks {
		switch task := &p.tasks[t]; {
		case task.owner != none:
			task.home = task.owner
		case len(task.contested) > 0:
			task.home = task.contested[0]
		}
	}
}

// give makes member i the active of task t.
func (p *planner) give(t *task, i int) {
	t.target = i
	m := &p.members[i]
	m.load[classOf(t)]++
	m.bySub[t.ID.Subtopology]++
}

// plan turns targets into grants: what is owned by another is withheld, and its owner told to release it.
func (p *planner) plan() Plan {
	grants := make([]Grant, len(p.members))
	for i := range p.members {
		grants[i] = Grant{Member: p.members[i].ID, Standby: p.members[i].standby}
		slices.SortFunc(grants[i].Standby, taskid.ID.Compare)
	}
	var moves []Move
	for t := range p.tasks { // in order of ids, so the lists come out sorted
		task := &p.tasks[t]
		holders := task.holders()
		if task.target == none {
			continue // nobody knows it; who claims it finds it missing from its assignment
		}
		if len(holders) == 0 {
			grants[task.target].Active = append(grants[task.target].Active, task.ID)
		}
		for _, i := range holders {
			grants[i].Release = append(grants[i].Release, task.ID)
		}
		if task.home != task.target || len(holders) > 0 {
			moves = append(moves, p.move(task, len(holders) > 0))
		}
	}
	return Plan{Grants: grants, Moves: moves}
}

// holders returns the members that must release the task before its target may have it.
func (t *task) holders() []int {
	if t.owner == none {
		return t.contested
	}
	if t.owner == t.target {
		return nil
	}
	return []int{t.owner}
}

func (p *planner) move(t *task, withheld bool) Move {
	m := Move{Task: t.ID, To: p.members[t.target].ID, Withheld: withheld, Why: t.why}
	if t.home != none {
		m.From = p.members[t.home].ID
	}
	if len(t.contested) > 0 {
		m.Why = "several members claim it in the same generation, all must release it"
	}
	return m
}
