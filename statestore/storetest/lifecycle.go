package storetest

import (
	"fmt"
	"testing"

	"github.com/millrace-io/millrace/statestore"
)

func runLifecycle(t *testing.T, newDisk func(t testing.TB) Disk) {
	t.Run("an abort brings back what the engine has", func(t *testing.T) {
		k := openTask(t, newDisk(t))
		k.put("a", "1", 1)
		k.put("b", "1", 1)
		k.commit()
		expect(t, "a is cached", k.get("a"), "1@1")
		k.put("a", "2", 2)
		must(t, k.kv.Put([]byte("b"), nil, 2))
		k.put("c", "2", 2)
		if !k.state.Dirty() || k.state.UncommittedBytes() == 0 {
			t.Error("the state does not say that it is dirty")
		}
		k.state.Abort()
		if k.state.Dirty() || k.state.UncommittedBytes() != 0 {
			t.Error("the state is dirty after an abort")
		}
		expectList(t, "content", k.ranged(nil, nil), `"a"=1@1`, `"b"=1@1`)
		expect(t, "a", k.get("a"), "1@1")
		expect(t, "b", k.get("b"), "1@1")
		expect(t, "c", k.get("c"), "absent")
		k.close()
	})
	t.Run("offsets come with the data", func(t *testing.T) {
		k := openTask(t, newDisk(t))
		if _, ok := k.state.Offset(kvName); ok {
			t.Error("a new state has an offset")
		}
		k.put("a", "1", 1)
		k.commit(statestore.Offset{Store: kvName, Next: 7})
		k.put("a", "2", 1)
		k.state.Abort()
		k.put("a", "3", 1)
		k = k.reopen()
		expect(t, "offset", offset(k.state, kvName), "7")
		expect(t, "the other store's offset", offset(k.state, windowName), "none")
		expect(t, "commits", fmt.Sprint(k.state.Seq()), "1")
		expect(t, "a", k.get("a"), "1@1")
		k.close()
	})
	t.Run("restore and go on", func(t *testing.T) { runRestore(t, newDisk) })
	t.Run("restore is refused over uncommitted writes", func(t *testing.T) {
		k := openTask(t, newDisk(t))
		k.put("a", "1", 1)
		if err := k.state.Restore(kvName, nil, 1); err == nil {
			t.Error("no error")
		}
		k.close()
	})
	t.Run("every batch is a whole commit", func(t *testing.T) { runEveryBatch(t, newDisk(t)) })
	t.Run("a crash after a flush loses what came later, exactly", func(t *testing.T) {
		k := openTask(t, newDisk(t))
		k.put("a", "1", 1)
		k.put("b", "1", 1)
		k.commit(statestore.Offset{Store: kvName, Next: 2})
		must(t, k.state.Flush(t.Context()))
		k = k.crash()
		expect(t, "offset", offset(k.state, kvName), "2")
		expectList(t, "content", k.ranged(nil, nil), `"a"=1@1`, `"b"=1@1`)
		k.close()
	})
}

func runRestore(t *testing.T, newDisk func(t testing.TB) Disk) {
	k := openTask(t, newDisk(t))
	k.put("a", "old", 1)
	k.putWindow("w", 0, "old")
	k.commit(statestore.Offset{Store: kvName, Next: 1}, statestore.Offset{Store: windowName, Next: 1})
	expect(t, "a is cached", k.get("a"), "old@1")
	expect(t, "gone is cached as absent", k.get("gone"), "absent")

	must(t, k.state.Restore(kvName, []statestore.ChangelogRecord{
		{Key: []byte("a"), Value: []byte("x"), Timestamp: 5},
		{Key: []byte("b"), Value: []byte(""), Timestamp: 6},
		{Key: []byte("gone"), Value: []byte("y"), Timestamp: 7},
		{Key: []byte("gone"), Value: nil, Timestamp: 8},
		{Key: nil, Value: []byte("no key"), Timestamp: 9},
		{Key: []byte("a"), Value: []byte("z"), Timestamp: 10},
	}, 12))
	window := func(key string, start byte) []byte {
		return append([]byte(key), 0, 0, 0, 0, 0, start, 0, 0, 0, 0, 0, 0)
	}
	must(t, k.state.Restore(windowName, []statestore.ChangelogRecord{
		{Key: window("w", 4), Value: []byte("new"), Timestamp: 3}, // start 4 << 16 = 262144
		{Key: window("w", 0), Value: []byte("expired"), Timestamp: 3},
		{Key: window("w\x00", 2), Value: []byte("other"), Timestamp: 3},
	}, 9))
	for range 2 {
		expectList(t, "table", k.ranged(nil, nil), `"a"=z@10`, `"b"=@6`)
		expect(t, "a", k.get("a"), "z@10")
		expectList(t, "windows", k.fetched("w", 0, 1<<40), "262144=new@3")
		expectList(t, "other windows", k.fetched("w\x00", 0, 1<<40), "131072=other@3")
		expect(t, "observed", fmt.Sprint(k.windows.ObservedTime()), "262144")
		expect(t, "offset of the table", offset(k.state, kvName), "12")
		expect(t, "offset of the windows", offset(k.state, windowName), "9")
		k = k.reopen()
	}
	err := k.state.Restore(windowName, []statestore.ChangelogRecord{{Key: []byte("short"), Value: []byte("v")}}, 10)
	if err == nil {
		t.Error("a changelog key that is no window key: no error")
	}
	expect(t, "offset after the error", offset(k.state, windowName), "9")
	k.put("a", "later", 20)
	k.commit(statestore.Offset{Store: kvName, Next: 13})
	expect(t, "a", k.get("a"), "later@20")
	k.close()
}

// watched is an engine that calls applied after each batch.
type watched struct {
	statestore.Engine
	applied func()
}

func (w *watched) Apply(b *statestore.Batch) error {
	err := w.Engine.Apply(b)
	w.applied()
	return err
}

// runEveryBatch crashes after each batch that reaches the engine, and finds data, offsets, observed time and number of
// one commit each time. Commit n gives everything the number n.
func runEveryBatch(t *testing.T, disk Disk) {
	const commits = 10
	engine := disk.Open(t)
	batches := 0
	w := &watched{Engine: engine, applied: func() {}}
	s, err := statestore.OpenState(w, specs, statestore.StateOptions{})
	must(t, err)
	w.applied = func() {
		batches++
		must(t, engine.Flush(t.Context()))
		checkWhole(t, openTask(t, disk.Crash(t)), batches)
	}
	k := &task{t: t, disk: disk, state: s}
	k.kv, _ = s.KeyValue(kvName)
	k.windows, _ = s.Window(windowName)
	for n := 1; n <= commits; n++ {
		k.put("n", fmt.Sprint(n), int64(n))
		k.putWindow("n", int64(n)*windowSize, fmt.Sprint(n))
		k.commit(statestore.Offset{Store: kvName, Next: int64(n)}, statestore.Offset{Store: windowName, Next: int64(n)})
	}
	expect(t, "batches", fmt.Sprint(batches), fmt.Sprint(commits))
	must(t, s.Close(t.Context()))
}

func checkWhole(t testing.TB, k *task, n int) {
	t.Helper()
	expect(t, "commit", fmt.Sprint(k.state.Seq()), fmt.Sprint(n))
	expect(t, "offset of the table", offset(k.state, kvName), fmt.Sprint(n))
	expect(t, "offset of the windows", offset(k.state, windowName), fmt.Sprint(n))
	expect(t, "value", k.get("n"), fmt.Sprintf("%d@%d", n, n))
	start := n * windowSize
	expect(t, "observed", fmt.Sprint(k.windows.ObservedTime()), fmt.Sprint(start))
	expect(t, "window", k.getWindow("n", int64(start)), fmt.Sprintf("%d@%d", n, start+1))
	k.close()
}

func offset(s *statestore.State, store string) string {
	next, ok := s.Offset(store)
	if !ok {
		return "none"
	}
	return fmt.Sprint(next)
}
