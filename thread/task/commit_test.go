package task_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/thread/task"
)

// counting counts the records in its store under the record's key, and moves its clock to the record's time.
var counting = script{store: true, process: func(k *kit, r *topology.Record) error {
	stored, _, found, err := k.kv.Get(r.Key)
	if err != nil {
		return err
	}
	var n uint64
	if found {
		n = binary.BigEndian.Uint64(stored)
	}
	*k.clock = max(*k.clock, r.Timestamp)
	if err := k.kv.Put(r.Key, binary.BigEndian.AppendUint64(nil, n+1), *k.clock); err != nil {
		return err
	}
	k.emit(&topology.Record{Key: r.Key, Value: binary.BigEndian.AppendUint64(nil, n+1), Timestamp: *k.clock})
	return nil
}}

// counts returns the counts in the outbox and the timestamps, which are the operator's clock.
func counts(tk *task.Task) (n []uint64, ts []int64) {
	for _, r := range tk.Outbox().Records {
		n = append(n, binary.BigEndian.Uint64(r.Value))
		ts = append(ts, r.Timestamp)
	}
	return n, ts
}

func commit(t *testing.T, tk *task.Task) []task.Position {
	t.Helper()
	if err := tk.FlushChangelog(); err != nil {
		t.Fatal(err)
	}
	positions := tk.Positions()
	if err := tk.Committed([]statestore.Offset{{Store: "store", Next: 1}}); err != nil {
		t.Fatal(err)
	}
	tk.SwapOutbox(new(task.Outbox))
	return positions
}

func TestFlushChangelogAppendsTheLastValuePerKey(t *testing.T) {
	tk := counting.start(t, nil)
	enqueue(t, tk, "a", rec(0, 1, ""), rec(1, 2, ""))
	process(t, tk, 2)
	tk.SwapOutbox(new(task.Outbox))
	if err := tk.FlushChangelog(); err != nil {
		t.Fatal(err)
	}
	out := tk.Outbox().Records
	if len(out) != 1 {
		t.Fatalf("%d changelog records, want the last value only", len(out))
	}
	// One sink comes first, so the changelog of the first store is topic 1; it goes to the task's own partition.
	if out[0].Topic != 1 || out[0].Partition != 3 || string(out[0].Key) != "k" || out[0].Timestamp != 2 ||
		binary.BigEndian.Uint64(out[0].Value) != 2 {
		t.Errorf("changelog record %+v", out[0])
	}
}

func TestPositionsAreTheInputsThatMoved(t *testing.T) {
	tk := copyAll.start(t, nil)
	if tk.CommitNeeded() || len(tk.Positions()) != 0 {
		t.Error("a new task has nothing to commit")
	}
	enqueue(t, tk, "a", rec(10, 1, "x"), rec(14, 2, "y"))
	if _, err := tk.Process(1); err != nil {
		t.Fatal(err)
	}
	got := tk.Positions()
	if len(got) != 1 || got[0].Topic != "a" || got[0].Partition != 3 || got[0].LeaderEpoch != 7 {
		t.Fatalf("positions %+v, want input a alone", got)
	}
	// Offsets 11 to 13 hold no record for us: the commit goes up to the head.
	if got[0].Next != 14 {
		t.Errorf("next offset %d, want 14", got[0].Next)
	}
}

func TestSeenAtCountsWhenTheInputIsEmpty(t *testing.T) {
	tk := copyAll.start(t, nil)
	enqueue(t, tk, "a", rec(10, 1, "x"), rec(12, 1, "y"))
	tk.SeenAt(0, 20) // the records are not processed yet
	if tk.CommitNeeded() {
		t.Fatal("unprocessed records were passed over")
	}
	for _, want := range []int64{12, 20} {
		if _, err := tk.Process(1); err != nil {
			t.Fatal(err)
		}
		if got := tk.Positions(); len(got) != 1 || got[0].Next != want {
			t.Fatalf("positions %+v, want offset %d", got, want)
		}
	}
	if err := tk.Committed(nil); err != nil {
		t.Fatal(err)
	}
	tk.SeenAt(0, 20)
	if tk.CommitNeeded() {
		t.Error("offset 20 is committed, but a commit is needed")
	}
	tk.SeenAt(0, 21)
	if got := tk.Positions(); len(got) != 1 || got[0].Next != 21 {
		t.Errorf("positions %+v, want offset 21 behind a marker", got)
	}
	tk.Abort()
	if tk.Base(0) != 20 || tk.CommitNeeded() {
		t.Errorf("after an abort the base is %d, want 20", tk.Base(0))
	}
}

func TestCommittedTwiceWithoutProgressNeedsNothing(t *testing.T) {
	tk := counting.start(t, nil)
	enqueue(t, tk, "a", rec(0, 1, ""))
	process(t, tk, 1)
	commit(t, tk)
	if tk.CommitNeeded() {
		t.Error("everything is committed, but a commit is needed")
	}
	if got := tk.Positions(); len(got) != 0 {
		t.Errorf("positions %+v, want none", got)
	}
}

func TestAbortGoesBackToTheCommit(t *testing.T) {
	tk := counting.start(t, nil)
	enqueue(t, tk, "a", rec(0, 100, ""))
	process(t, tk, 1)
	commit(t, tk)

	enqueue(t, tk, "a", rec(1, 900, ""), rec(2, 901, ""))
	if _, err := tk.Process(1); err != nil {
		t.Fatal(err)
	}
	tk.Abort()
	if tk.BufferedTotal() != 0 || len(tk.Outbox().Records) != 0 || tk.CommitNeeded() {
		t.Error("an aborted task still holds queues, output or progress")
	}
	if tk.StreamTime() != 100 || tk.Base(0) != 1 {
		t.Errorf("stream time %d and base %d, want 100 and 1", tk.StreamTime(), tk.Base(0))
	}
	// The same offset again, with another record: count and clock begin at the commit.
	enqueue(t, tk, "a", rec(1, 50, ""))
	process(t, tk, 1)
	n, ts := counts(tk)
	if !slices.Equal(n, []uint64{2}) || !slices.Equal(ts, []int64{100}) {
		t.Errorf("counts %v at %v, want 2 at the committed clock 100", n, ts)
	}
}

func TestResumeTakesTheNewestMetadata(t *testing.T) {
	first := counting.start(t, nil)
	enqueue(t, first, "a", rec(0, 100, ""))
	process(t, first, 1)
	older := commit(t, first)
	enqueue(t, first, "b", rec(0, 300, ""))
	process(t, first, 1)
	newer := commit(t, first)

	second := counting.start(t, nil)
	second.Resume(map[string]task.Committed{
		"a": {Next: older[0].Next, Metadata: older[0].Metadata},
		"b": {Next: newer[0].Next, Metadata: newer[0].Metadata},
	})
	if second.StreamTime() != 300 || second.Base(0) != 1 || second.Base(1) != 1 {
		t.Errorf("stream time %d, bases %d and %d", second.StreamTime(), second.Base(0), second.Base(1))
	}
	if seq, ok := task.CommitSeq(newer[0].Metadata); !ok || second.CommitSeq() != seq+1 {
		t.Errorf("next sequence number %d after %d (%v)", second.CommitSeq(), seq, ok)
	}
	enqueue(t, second, "a", rec(1, 5, ""))
	process(t, second, 1)
	if _, ts := counts(second); !slices.Equal(ts, []int64{300}) {
		t.Errorf("the operator's clock is %v, want 300", ts)
	}
}

func TestForeignMetadataIsIgnored(t *testing.T) {
	for _, metadata := range []string{"", "no base64!", "AQIDBA==", "TQEAAAAAAAAAAQ=="} {
		tk := copyAll.start(t, nil)
		tk.Resume(map[string]task.Committed{"a": {Next: 5, Metadata: metadata}})
		if tk.StreamTime() != -1 || tk.Base(0) != 5 || tk.CommitSeq() != 1 {
			t.Errorf("%q: stream time %d, base %d, next sequence number %d", metadata, tk.StreamTime(), tk.Base(0), tk.CommitSeq())
		}
		if _, ok := task.CommitSeq(metadata); ok {
			t.Errorf("%q is taken for ours", metadata)
		}
	}
}

func TestNoCommittedOffset(t *testing.T) {
	tk := copyAll.start(t, nil)
	tk.Resume(map[string]task.Committed{"a": {Next: -1}})
	if tk.Base(0) != -1 || tk.Base(1) != -1 {
		t.Errorf("bases %d and %d, want -1", tk.Base(0), tk.Base(1))
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add("")
	f.Add("TQEAAAAAAAAAAQAAAAAAAAAB")
	f.Fuzz(func(t *testing.T, metadata string) {
		tk := copyAll.start(t, nil)
		tk.Resume(map[string]task.Committed{"a": {Next: 1, Metadata: metadata}})
		seq, ok := task.CommitSeq(metadata)
		if ok && tk.CommitSeq() != seq+1 {
			t.Errorf("sequence number %d, next %d", seq, tk.CommitSeq())
		}
	})
}
