package task

import "github.com/millrace-io/millrace/statestore"

// The owner commits in this order, and the order is what makes a crash at any point harmless:
//
//	FlushChangelog   the last value of every dirty key goes to the outbox
//	                 the owner produces the outbox and waits for every acknowledgement
//	Positions        the owner commits these offsets, in the transaction under exactly-once
//	Committed        the overlay and the changelog offsets go to the store, in one batch
//
// Nothing may be processed in between. Abort undoes everything since the last Committed.

// Position is an input offset to commit.
type Position struct {
	Topic     string
	Partition int32
	// Next is the offset of the first record that is not covered by the commit.
	Next        int64
	LeaderEpoch int32 // -1 unknown
	// Metadata carries the commit sequence number, the stream time and the operators' times.
	Metadata string
}

// Committed is what an earlier commit left for an input.
type Committed struct {
	Next        int64 // -1 when there is none
	LeaderEpoch int32
	Metadata    string
}

// CommitNeeded reports whether an offset moved, or state or output came into being, since the last commit.
func (t *Task) CommitNeeded() bool {
	for i := range t.inputs {
		if t.inputs[i].moved {
			return true
		}
	}
	return t.wrote()
}

func (t *Task) wrote() bool {
	return t.stats.Emitted != t.emitted || t.state != nil && t.state.Dirty()
}

// FlushChangelog appends the changelog records of this commit to the outbox. Their slices belong to the state and are
// valid until Committed or Abort.
func (t *Task) FlushChangelog() error {
	if t.state == nil {
		return nil
	}
	return t.state.Changelog(func(store string, key, value []byte, ts int64) error {
		t.outbox.Records = append(t.outbox.Records, OutRecord{
			Topic: t.stores[store], Partition: t.id.Partition, Key: key, Value: value, Timestamp: ts,
		})
		return nil
	})
}

// CommitSeq returns the sequence number that Positions writes: one more than that of the last commit.
func (t *Task) CommitSeq() uint64 { return t.times.seq + 1 }

// Positions returns the offsets to commit: the inputs that moved. If none did but state or output came into being, one
// input is committed again where it stands: under exactly-once a task that wrote must take part in the commit, because
// the group fences zombies there and nowhere else.
func (t *Task) Positions() []Position {
	next := t.times
	next.seq++
	metadata := encodeMetadata(next, t.clocks)
	var positions []Position
	for i := range t.inputs {
		if t.inputs[i].moved {
			positions = append(positions, t.position(&t.inputs[i], metadata))
		}
	}
	if len(positions) > 0 || !t.wrote() {
		return positions
	}
	for i := range t.inputs {
		if t.inputs[i].at() >= 0 {
			return []Position{t.position(&t.inputs[i], metadata)}
		}
	}
	return nil
}

func (t *Task) position(in *input, metadata string) Position {
	return Position{Topic: in.topic, Partition: t.id.Partition, Next: in.at(), LeaderEpoch: in.epoch, Metadata: metadata}
}

// at is the offset to commit. It skips what lies between the last record taken and the next one, or the end of what was
// seen: markers and compacted records.
func (in *input) at() int64 {
	if in.len() > 0 {
		return max(in.next, in.peek().Offset)
	}
	return max(in.next, in.seen)
}

// Committed tells that Positions are committed: state and changelog offsets become durable together, and what was
// written so far can no longer be aborted. An error means that the store failed; the task must be closed then and
// restored from its changelog.
func (t *Task) Committed(changelogNext []statestore.Offset) error {
	if t.state != nil {
		if err := t.state.Commit(changelogNext); err != nil {
			return err
		}
	}
	t.times.seq++
	t.saved = t.times
	t.clocks.save()
	t.emitted = t.stats.Emitted
	for i := range t.inputs {
		in := &t.inputs[i]
		in.next = in.at()
		in.base, in.moved = in.next, false
	}
	return nil
}

// Abort drops everything since the last commit: the overlay, the queues, the outbox. The owner must seek every input
// back to [Task.Base]. Counters are not taken back.
func (t *Task) Abort() {
	if t.state != nil {
		t.state.Abort()
	}
	t.times = t.saved
	t.clocks.restore()
	t.outbox = new(Outbox)
	t.emitted = t.stats.Emitted
	t.current = nil
	for i := range t.inputs {
		in := &t.inputs[i]
		in.reset()
		in.next, in.seen, in.moved = in.base, -1, false
	}
}

// Base returns the committed offset of an input, -1 when there is none.
func (t *Task) Base(in int) int64 { return t.inputs[in].base }

// Resume sets the committed offsets, by topic, before the first record. The newest of their metadata gives back stream
// times and sequence number.
func (t *Task) Resume(committed map[string]Committed) {
	var newest map[uint32]int64
	t.times = unknownTimes
	for i := range t.inputs {
		in := &t.inputs[i]
		c, ok := committed[in.topic]
		if !ok || c.Next < 0 {
			in.next, in.seen, in.base = -1, -1, -1
			continue
		}
		in.next, in.seen, in.base, in.epoch, in.moved = c.Next, -1, c.Next, c.LeaderEpoch, false
		if p, times, ok := decodeMetadata(c.Metadata); ok && p.seq >= t.times.seq {
			t.times, newest = p, times
		}
	}
	t.saved = t.times
	for i := range t.clocks {
		clock := &t.clocks[i]
		clock.saved = -1
		if at, ok := newest[clock.id]; ok {
			clock.saved = at
		}
	}
	t.clocks.restore()
}
