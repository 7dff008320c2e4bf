package thread

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/membership/classic"
	"github.com/millrace-io/millrace/statestore"
)

// Opening a task, after it was assigned or after a crash. The order is the other half of the argument in commit.go:
//
//	O1  the group gave us the task, and nobody else in this process has it open
//	O2  our transactional id was initialised when the thread started: an older transaction of ours is decided
//	O3  read the committed input positions, waiting for every transaction, of any producer, that would still change them
//	O4  ask where the changelogs end now: after O3, so that everything which belongs to those positions lies before
//	O5  open the local state and check for whom it was made
//	O6  apply what the changelogs have beyond the local state, under exactly-once only what is committed
//	O7  process from the positions of O3
//
// O3 to O6 run on the restore plane. The local state is given up and rebuilt for four reasons only: it was made from other
// topics, the changelog no longer continues it (its beginning was deleted, or its tombstones may be gone), it is ahead of the
// changelog, or it is damaged. It is never given up because of a crash, a fencing or a user error.

// tombstoneRetention is how long a compacted changelog keeps its deletions, Kafka's default delete.retention.ms. Local state
// that missed more than that may hold keys whose deletion is gone, so it is rebuilt.
const tombstoneRetention = 24 * time.Hour

// opening is a task on its way from the assignment to the thread. The restore plane owns it until it sends it to the thread,
// with err or with everything else set.
type opening struct {
	id     taskid.ID
	sub    *topology.Subtopology
	cancel context.CancelFunc

	state     *statestore.State
	committed map[partition]classic.Offset // O3
	starts    map[partition]int64          // O3, or by the reset rule
	err       error
}

// open opens a task for a thread on a goroutine of its own, and sends the outcome to done, which must have room for it: a
// cancelled opening is sent too.
func (r *Restorer) open(ctx context.Context, cfg *Config, group Group, o *opening, done chan<- *opening) {
	ctx, o.cancel = context.WithCancel(ctx)
	go func() {
		o.err = outlast(ctx, r.log, "opening a task", func() error { return r.prepare(ctx, cfg, group, o) })
		if o.err != nil {
			o.err = fmt.Errorf("opening task %v: %w", o.id, o.err)
		}
		done <- o
	}()
}

// prepare runs O1 to O6. After an error nothing is left open.
func (r *Restorer) prepare(ctx context.Context, cfg *Config, group Group, o *opening) error {
	if err := r.owners.acquire(ctx, o.id); err != nil {
		return err
	}
	err := r.readPositions(ctx, cfg, group, o)
	if err == nil {
		err = r.openState(ctx, cfg, o)
	}
	if err != nil {
		if o.state != nil {
			o.state.Close(context.WithoutCancel(ctx)) // the error that led here tells more
			o.state = nil
		}
		r.owners.release(o.id)
	}
	return err
}

// inputsOf returns the source partitions of a task.
func (c *Config) inputsOf(id taskid.ID) []partition {
	var inputs []partition
	for _, s := range c.Layout().Sources(id) {
		inputs = append(inputs, partition{s.Topic, id.Partition})
	}
	return inputs
}

// readPositions is O3. Where nothing is committed, the reset rule names the position.
func (r *Restorer) readPositions(ctx context.Context, cfg *Config, group Group, o *opening) error {
	inputs := cfg.inputsOf(o.id)
	if len(inputs) == 0 { // the leader has seen a topic grow before this process
		if err := cfg.Refresh(ctx); err != nil {
			return err
		}
		if inputs = cfg.inputsOf(o.id); len(inputs) == 0 {
			return fmt.Errorf("it has no source partition: no source topic of sub-topology %s has a partition %d", o.id.Subtopology, o.id.Partition)
		}
	}
	ask := make([]classic.TopicPartition, len(inputs))
	for i, p := range inputs {
		ask[i] = classic.TopicPartition{Topic: p.topic, Partition: p.index}
	}
	committed, err := group.Committed(ctx, ask)
	if err != nil {
		return fmt.Errorf("reading committed positions: %w", err)
	}
	o.committed, o.starts = map[partition]classic.Offset{}, map[partition]int64{}
	var earliest, latest []partition
	for i, p := range inputs {
		if at, ok := committed[ask[i]]; ok && at.At >= 0 {
			o.committed[p], o.starts[p] = at, at.At
		} else if cfg.ResetLatest && !cfg.internal(o.sub, p.topic) && !cfg.Layout().isNew(p) {
			latest = append(latest, p)
		} else {
			earliest = append(earliest, p)
		}
	}
	for at, partitions := range map[int64][]partition{offsetEarliest: earliest, offsetLatest: latest} {
		offsets, err := listOffsets(ctx, r.client, at, partitions)
		if err != nil {
			return err
		}
		for p, offset := range offsets {
			o.starts[p] = offset
		}
	}
	return nil
}

func (c *Config) internal(sub *topology.Subtopology, topic string) bool {
	for _, s := range sub.Sources {
		if s.Topic == topic {
			return s.Internal
		}
	}
	return false
}

// openState is O4 to O6.
func (r *Restorer) openState(ctx context.Context, cfg *Config, o *opening) error {
	var logs []partition
	var topics []string
	for _, s := range o.sub.Stores {
		if s.Logged {
			logs = append(logs, partition{s.Changelog, o.id.Partition})
			topics = append(topics, s.Changelog)
		}
	}
	opts := statestore.StateOptions{Identity: cfg.Identity, CacheBytes: cfg.CacheBytes}
	if len(o.sub.Stores) == 0 {
		return nil
	}
	if len(topics) == 0 {
		return cfg.openLocal(o, opts)
	}
	r.progress.Tasks.Add(1)
	defer r.progress.Tasks.Add(-1)

	infos, err := describeTopics(ctx, r.client, topics...)
	if err != nil {
		return err
	}
	opts.Identity.Changelogs = map[string]string{}
	for _, s := range o.sub.Stores {
		if s.Logged {
			id := infos[s.Changelog].id
			opts.Identity.Changelogs[s.Name] = hex.EncodeToString(id[:])
		}
	}
	ends, err := listOffsets(ctx, r.client, offsetLatest, logs) // O4
	if err != nil {
		return err
	}
	begins, err := listOffsets(ctx, r.client, offsetEarliest, logs)
	if err != nil {
		return err
	}
	return r.catchUp(ctx, cfg, o, opts, begins, ends)
}

// catchUp is O5 and O6. It rebuilds the local state at most once: a fresh one cannot be wrong.
func (r *Restorer) catchUp(ctx context.Context, cfg *Config, o *opening, opts statestore.StateOptions, begins, ends map[partition]int64) error {
	err := cfg.openLocal(o, opts)
	if err == nil {
		err = r.restoreStores(ctx, o, begins, ends)
	}
	why, obsolete := rebuildable(err)
	if !obsolete {
		return err
	}
	r.progress.Rebuilds.Add(1)
	r.log.Warn("local state cannot be used and is rebuilt from the changelogs", "task", o.id, "why", why)
	if o.state != nil {
		if err := o.state.Close(ctx); err != nil {
			r.log.Warn("closing the obsolete state", "task", o.id, "err", err)
		}
		o.state = nil
	}
	if err := cfg.DiscardState(o.id); err != nil {
		return err
	}
	if err := cfg.openLocal(o, opts); err != nil {
		return err
	}
	return r.restoreStores(ctx, o, begins, ends)
}

// openLocal is O5: it opens the engine and reads the state's meta rows.
func (c *Config) openLocal(o *opening, opts statestore.StateOptions) error {
	specs := make([]statestore.Spec, len(o.sub.Stores))
	for i, s := range o.sub.Stores {
		specs[i] = s.Spec
	}
	engine, dir, err := c.OpenEngine(o.id)
	if err != nil {
		return err
	}
	opts.Dir = dir
	state, err := statestore.OpenState(engine, specs, opts)
	if err != nil {
		engine.Close() // the error that led here tells more
		return err
	}
	o.state = state
	return nil
}

// errDiscontinued says that a changelog does not continue the local state.
type errDiscontinued struct{ why string }

func (e *errDiscontinued) Error() string { return e.why }

// rebuildable tells whether an error means that the local state is of no use to anybody any more.
func rebuildable(err error) (why string, ok bool) {
	if gap, is := errors.AsType[*errDiscontinued](err); is {
		return gap.why, true
	}
	if id, is := errors.AsType[*statestore.IdentityError](err); is {
		return id.Error(), id.Rebuildable()
	}
	if store, is := errors.AsType[*statestore.StoreError](err); is {
		return store.Error(), store.Corrupt
	}
	if errors.Is(err, kerr.OffsetOutOfRange) {
		return "the beginning of the changelog was deleted while it was read: " + err.Error(), true
	}
	return "", false
}

// restoreStores is O6 for every store of the task.
func (r *Restorer) restoreStores(ctx context.Context, o *opening, begins, ends map[partition]int64) error {
	began := time.Now()
	var total int64
	for _, s := range o.sub.Stores {
		if !s.Logged {
			continue
		}
		p := partition{s.Changelog, o.id.Partition}
		c := changelog{task: o.id, store: s.Name, topic: p.topic, partition: p.index, from: begins[p], end: ends[p]}
		if err := c.continueFrom(o.state, time.Now()); err != nil {
			return err
		}
		n, err := r.restore(ctx, o.state, c)
		if err != nil {
			return err
		}
		total += n
	}
	r.log.Info("task restored", "task", o.id, "records", total, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// continueFrom sets where restoring begins: at the local position if the changelog still continues it.
func (c *changelog) continueFrom(state *statestore.State, now time.Time) error {
	have, ok := state.Offset(c.store)
	if !ok {
		return nil
	}
	discontinued := func(format string, args ...any) error {
		return &errDiscontinued{fmt.Sprintf("store %q, changelog %s partition %d: ", c.store, c.topic, c.partition) + fmt.Sprintf(format, args...)}
	}
	switch {
	case have > c.end:
		return discontinued("local state is at offset %d but the changelog ends at %d: records were lost on the brokers", have, c.end)
	case have < c.from:
		return discontinued("local state is at offset %d but the changelog begins at %d", have, c.from)
	}
	applied, ok := state.LastApplied(c.store)
	if have < c.end && ok && now.Sub(applied) > tombstoneRetention {
		return discontinued("local state is %v old, deletions since then may be gone", now.Sub(applied).Round(time.Hour))
	}
	c.from = have
	return nil
}
