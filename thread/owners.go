package thread

import (
	"context"
	"sync"

	"github.com/millrace-io/millrace/internal/taskid"
)

// owners knows which tasks are open in the process. It is the one lock in this package: it is taken when a task moves, never
// per record.
type owners struct {
	mu   sync.Mutex
	held map[taskid.ID]chan struct{} // closed when released
}

func newOwners() *owners { return &owners{held: map[taskid.ID]chan struct{}{}} }

// acquire waits until nobody in the process has the task open, and then holds it.
func (o *owners) acquire(ctx context.Context, id taskid.ID) error {
	for {
		o.mu.Lock()
		released, busy := o.held[id]
		if !busy {
			o.held[id] = make(chan struct{})
		}
		o.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-released:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// release lets the next one have the task.
func (o *owners) release(id taskid.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.held[id])
	delete(o.held, id)
}
