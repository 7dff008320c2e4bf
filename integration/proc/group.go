package proc

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// Group is what the processes of an application tell of their own threads.
type Group struct {
	Generation int32
	Tasks      map[string][]string // active tasks by instance id
}

// AskGroup asks each process for its own threads. Threads in different generations are an error: the group is in a
// rebalance then.
func AskGroup(ctx context.Context, processes ...REST) (Group, error) {
	g := Group{Generation: -1, Tasks: map[string][]string{}}
	for _, r := range processes {
		m, err := r.Metadata(ctx)
		if err != nil {
			return g, err
		}
		for _, in := range m.Instances {
			for _, t := range in.Threads { // only the answering process has them
				g.Tasks[t.InstanceID] = t.ActiveTasks
				if g.Generation >= 0 && g.Generation != t.Generation {
					return g, fmt.Errorf("threads are in generations %d and %d", g.Generation, t.Generation)
				}
				g.Generation = t.Generation
			}
		}
	}
	return g, nil
}

// Complete says whether there are so many threads and every one of so many tasks has exactly one of them.
func (g Group) Complete(threads, tasks int) bool {
	all, total := map[string]bool{}, 0
	for _, list := range g.Tasks {
		total += len(list)
		for _, task := range list {
			all[task] = true
		}
	}
	return len(g.Tasks) == threads && total == tasks && len(all) == tasks
}

// Equal says whether generation and tasks of every thread are the same.
func (g Group) Equal(o Group) bool {
	return g.Generation == o.Generation && maps.EqualFunc(g.Tasks, o.Tasks, slices.Equal[[]string])
}

// IDs lists the instance ids.
func (g Group) IDs() []string { return slices.Sorted(maps.Keys(g.Tasks)) }
