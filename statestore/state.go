package statestore

import (
	"context"
	"fmt"
	"time"
)

// DefaultCacheBytes is the budget for clean entries that a zero [StateOptions] gives.
const DefaultCacheBytes = 4 << 20

// StateOptions tunes a [State]. The zero value works.
type StateOptions struct {
	// CacheBytes bounds the clean entries kept as read cache, for all stores of the task together; 0 means
	// [DefaultCacheBytes]. Uncommitted entries are not bounded here: their owner commits when [State.UncommittedBytes]
	// is too much.
	CacheBytes int64
	// Identity is checked against what the engine was written for, and recorded on the first open. Empty fields are
	// neither checked nor recorded.
	Identity Identity
	// Dir is the engine's directory, for errors.
	Dir string
	// Now is read once a commit and once a restored batch, to remember when each store was last written. Nil means
	// time.Now.
	Now func() time.Time
}

// Stats counts what happened in a [State] since it was opened.
type Stats struct {
	// ExpiredPuts are writes to windows out of retention, which were dropped.
	ExpiredPuts int64
	// ExpiredRestores are changelog records of such windows, which were skipped.
	ExpiredRestores int64
	// CacheHits and CacheMisses are look-ups answered from memory and from the engine. A write of the key just read is
	// neither.
	CacheHits, CacheMisses int64
	// Commits is the number of batches that reached the engine by Commit.
	Commits int64
	// CacheBytes is the memory that clean entries take now.
	CacheBytes int64
}

// State is everything one task owns: an engine, the overlay of its stores, and their changelog offsets. It belongs to
// one goroutine at a time; only [State.Reader] may be called from anywhere.
type State struct {
	engine  Engine
	dir     string
	now     func() time.Time
	overlay *overlay
	stores  map[string]store
	ordered []store // in the order of the specs
	windows []*windowStore
	views   map[string]viewStore
	batch   Batch
	arena   []byte // changelog keys handed out since the last commit
	seq     uint64
	stats   Stats
	failed  error
}

// store is the part of a store that State drives.
type store interface {
	base() *table
	// changelogKey returns the key of an entry as the changelog has it.
	changelogKey(e *entry, arena []byte) (key, rest []byte)
	// stage adds to the batch what a commit writes beside the entries.
	stage(b *Batch)
	// committed and aborted settle what stage wrote, or did not.
	committed()
	aborted()
	// restoreKey returns the row key of a changelog key; ok is false when the record is expired.
	restoreKey(dst, key []byte) (row []byte, ok bool, err error)
}

// OpenState reads the engine's meta rows, checks identity and format, registers stores that are new, and returns the
// task's state as of the last batch the engine holds. Stores that the engine has but specs lacks keep their rows: after
// a rollback to the older topology their offset says how far they are. A mismatch is an *[IdentityError].
func OpenState(e Engine, specs []Spec, opts StateOptions) (*State, error) {
	if opts.CacheBytes == 0 {
		opts.CacheBytes = DefaultCacheBytes
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &State{
		engine: e, dir: opts.Dir, now: opts.Now, overlay: newOverlay(opts.CacheBytes),
		stores: make(map[string]store, len(specs)), views: make(map[string]viewStore, len(specs)),
	}
	m, err := readMeta(e, opts.Dir)
	if err != nil {
		return nil, err
	}
	if err := m.check(opts.Identity, specs); err != nil {
		return nil, err
	}
	for _, spec := range specs {
		if err := s.register(m, spec, opts.Identity); err != nil {
			return nil, err
		}
	}
	m.stageIdentity(&s.batch, opts.Identity)
	if s.batch.Len() > 0 {
		if err := e.Apply(&s.batch); err != nil {
			return nil, fmt.Errorf("register the stores: %w", err)
		}
	}
	s.seq = m.seq
	return s, nil
}

// register makes one store known, giving it an id if the engine has none for it.
func (s *State) register(m *meta, spec Spec, id Identity) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	if _, twice := s.stores[spec.Name]; twice {
		return fmt.Errorf("store %q is declared twice: store names are unique in a topology", spec.Name)
	}
	row, err := m.store(&s.batch, spec)
	if err != nil {
		return err
	}
	m.stageChangelog(&s.batch, row.id, id.Changelogs[spec.Name])
	t := table{state: s, spec: spec, id: row.id}
	t.offset = Offset{Store: spec.Name, Next: m.offsets[row.id].next}
	t.appliedMilli = m.offsets[row.id].applied
	_, t.hasOffset = m.offsets[row.id]

	var added store
	if spec.Kind == Window {
		observed := m.observedTime(row.id)
		w := &windowStore{table: t, whole: observed, clock: segmentClock{
			retention: spec.Retention, interval: row.interval, observed: observed, committed: observed,
		}}
		s.windows = append(s.windows, w)
		s.overlay.forgot = s.forgot
		added = w
	} else {
		added = &keyValueStore{table: t}
	}
	s.stores[spec.Name] = added
	s.ordered = append(s.ordered, added)
	s.views[spec.Name] = viewStore{spec: spec, id: row.id, interval: row.interval}
	return nil
}

// forgot passes on that a window's row leaves the overlay.
func (s *State) forgot(e *entry) {
	for _, w := range s.windows {
		if w.id == e.store {
			w.forgot(windowStart(e.key()))
		}
	}
}

// KeyValue returns the store of that name and kind.
func (s *State) KeyValue(name string) (KeyValueStore, error) {
	if kv, ok := s.stores[name].(*keyValueStore); ok {
		return kv, nil
	}
	return nil, s.wrongStore(name, KeyValue)
}

// Window returns the store of that name and kind.
func (s *State) Window(name string) (WindowStore, error) {
	if w, ok := s.stores[name].(*windowStore); ok {
		return w, nil
	}
	return nil, s.wrongStore(name, Window)
}

func (s *State) wrongStore(name string, want Kind) error {
	if have, ok := s.stores[name]; ok {
		return fmt.Errorf("store %q is a %v store, not a %v store", name, have.base().spec.Kind, want)
	}
	return fmt.Errorf("store %q does not belong to this task: connect it to the operator that uses it", name)
}

// Dirty says whether there are writes that the next Commit would persist.
func (s *State) Dirty() bool { return s.overlay.dirtyBytes > 0 }

// UncommittedBytes is the memory that uncommitted writes take. Owners commit early when it grows too much.
func (s *State) UncommittedBytes() int64 { return s.overlay.dirtyBytes }

// Seq counts the commits that the engine holds since it was created. It is written in the batch of each commit.
func (s *State) Seq() uint64 { return s.seq }

// Stats returns the counters.
func (s *State) Stats() Stats {
	stats := s.stats
	stats.CacheBytes = s.overlay.cleanBytes
	return stats
}

// Offset returns the changelog position up to which the store's committed state is complete; ok is false when nothing
// of its changelog was ever applied.
func (s *State) Offset(name string) (next int64, ok bool) {
	st, known := s.stores[name]
	if !known || !st.base().hasOffset {
		return 0, false
	}
	return st.base().offset.Next, true
}

// LastApplied returns when the store's offset was last written; ok is false when it never was. A copy older than the
// changelog's tombstone retention may show keys that were deleted meanwhile: its owner rebuilds it.
func (s *State) LastApplied(name string) (at time.Time, ok bool) {
	st, known := s.stores[name]
	if !known || !st.base().hasOffset {
		return time.Time{}, false
	}
	return time.UnixMilli(st.base().appliedMilli), true
}

// usable reports the failure after which the state takes no more writes.
func (s *State) usable() error { return s.failed }

// Flush makes the committed state durable.
func (s *State) Flush(ctx context.Context) error { return s.engine.Flush(ctx) }

// FlushIfDue lets the engine flush in the background when it is time. Commit does so too; owners call it for tasks that
// have nothing to commit, so that their last batches do not stay in memory for ever.
func (s *State) FlushIfDue(now time.Time) { s.engine.FlushIfDue(now) }

// Close makes the committed state durable and closes the engine, which it does even when the flush fails. Uncommitted
// writes are dropped. Open views answer [ErrClosed] from then on.
func (s *State) Close(ctx context.Context) error {
	var flushed error
	if s.failed == nil {
		flushed = s.engine.Flush(ctx)
	}
	s.failed = ErrClosed
	if err := s.engine.Close(); err != nil {
		return err
	}
	return flushed
}
