package streamstest

import (
	"time"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/memstore"
	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/thread/task"
)

// unit is the one task of a sub-topology with its state.
type unit struct {
	task   *task.Task
	state  *statestore.State // nil without stores
	topics []string          // names of the topics that outbox records refer to by index
	stores []topology.StoreSpec
	spare  *task.Outbox
}

func (d *Driver) newUnit(sub *topology.Subtopology, o options) (*unit, error) {
	u := &unit{topics: append([]string{}, sub.Sinks...), stores: sub.Stores, spare: new(task.Outbox)}
	cfg := task.Config{
		ID: taskid.ID{Subtopology: sub.ID}, Sub: sub,
		OnDecodeError: streams.HandlerForTask(o.onDecode), OnProcessError: streams.HandlerForTask(o.onProcess),
	}
	var specs []statestore.Spec
	for _, store := range sub.Stores {
		u.topics = append(u.topics, store.Changelog)
		specs = append(specs, store.Spec)
	}
	if len(specs) > 0 {
		state, err := statestore.OpenState(memstore.New(), specs, statestore.StateOptions{Now: func() time.Time { return d.now }})
		if err != nil {
			return nil, err
		}
		u.state, cfg.State = state, state
	}
	var err error
	u.task, err = task.New(cfg)
	return u, err
}

// step processes one record and commits it in the order of production: changelog into the outbox, outbox to the topics
// (which acknowledge at once), then the state with the changelog offsets.
func (u *unit) step(d *Driver) error {
	if _, err := u.task.Process(1); err != nil {
		u.task.Abort()
		return err
	}
	if err := u.task.FlushChangelog(); err != nil {
		return err
	}
	outbox := u.task.SwapOutbox(u.spare)
	for i := range outbox.Records {
		r := &outbox.Records[i]
		d.write(u.topics[r.Topic], capture(r.Key, r.Value, r.Headers, r.Timestamp))
	}
	outbox.Reset()
	u.spare = outbox
	return u.task.Committed(u.changelogOffsets(d))
}

// changelogOffsets are the ends of the changelogs that exist.
func (u *unit) changelogOffsets(d *Driver) []statestore.Offset {
	var offsets []statestore.Offset
	for _, store := range u.stores {
		if next := len(d.topics[store.Changelog]); store.Logged && next > 0 {
			offsets = append(offsets, statestore.Offset{Store: store.Name, Next: int64(next)})
		}
	}
	return offsets
}
