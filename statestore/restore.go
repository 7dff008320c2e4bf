package statestore

import "fmt"

// Restore writes changelog records, in Kafka Streams' bytes, straight to the engine, with next as the store's offset in
// the same batch. The owner chooses the size of a call; engines take batches of some megabytes best. Records without a
// key are skipped, as Kafka Streams does. It is an error while there are uncommitted writes; errors of the engine are as
// with [State.Commit].
func (s *State) Restore(name string, recs []ChangelogRecord, next int64) error {
	if s.failed != nil {
		return s.failed
	}
	st, ok := s.stores[name]
	if !ok {
		return fmt.Errorf("restore: store %q does not belong to this task", name)
	}
	if s.Dirty() {
		return fmt.Errorf("restore of store %q: the task has uncommitted writes: commit or abort them first", name)
	}
	s.batch.Reset()
	if err := s.stageRecords(st, recs); err != nil {
		st.aborted()
		return err
	}
	st.stage(&s.batch)
	now := s.now()
	stageOffset(&s.batch, st.base().id, next, now.UnixMilli())
	if err := s.apply("restore"); err != nil {
		st.aborted()
		return err
	}
	// The engine was written past the overlay.
	s.overlay.dropClean()
	s.overlay.last = noEntry
	st.committed()
	st.base().moved(next, now.UnixMilli())
	s.batch.Reset()
	s.engine.FlushIfDue(now)
	return nil
}

func (s *State) stageRecords(st store, recs []ChangelogRecord) error {
	id := st.base().id
	var key, row []byte
	for _, rec := range recs {
		if rec.Key == nil {
			continue
		}
		var ok bool
		var err error
		key, ok, err = st.restoreKey(appendStorePrefix(key[:0], id), rec.Key)
		switch {
		case err != nil:
			return fmt.Errorf("restore of store %q: %w", st.base().spec.Name, err)
		case !ok:
			s.stats.ExpiredRestores++
		case rec.Value == nil:
			s.batch.Delete(key)
		default:
			row = append(appendTimestamp(row[:0], rec.Timestamp), rec.Value...)
			s.batch.Set(key, row)
		}
	}
	return nil
}
