package statestore_test

import (
	"encoding/binary"
	"testing"

	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/memstore"
)

// counting is an engine that counts reads of rows.
type counting struct {
	*memstore.Store
	gets int
}

func (c *counting) Get(dst, key []byte) ([]byte, bool, error) {
	c.gets++
	return c.Store.Get(dst, key)
}

// windows is a window store over a counting engine.
type windows struct {
	t      *testing.T
	engine *counting
	state  *statestore.State
	store  statestore.WindowStore
}

func openWindows(t *testing.T, engine *memstore.Store, cacheBytes int64) *windows {
	w := &windows{t: t, engine: &counting{Store: engine}}
	var err error
	w.state, err = statestore.OpenState(w.engine, []statestore.Spec{
		{Name: "w", Kind: statestore.Window, Logged: true, WindowSize: 10, Retention: 1000},
	}, statestore.StateOptions{CacheBytes: cacheBytes})
	must(t, err)
	w.store, err = w.state.Window("w")
	must(t, err)
	w.engine.gets = 0
	return w
}

// put sets the window of a key. The key is new in it, or not.
func (w *windows) put(key string, start int64, known bool) {
	w.t.Helper()
	_, _, ok, err := w.store.Get([]byte(key), start)
	must(w.t, err)
	if ok != known {
		w.t.Fatalf("key %s in window %d: found %v, want %v", key, start, ok, known)
	}
	must(w.t, w.store.Put([]byte(key), start, []byte("value"), start))
}

// asked tells how often the engine was read since the last time.
func (w *windows) asked(want int, when string) {
	w.t.Helper()
	if w.engine.gets != want {
		w.t.Errorf("%s: the engine was asked %d times, want %d", when, w.engine.gets, want)
	}
	w.engine.gets = 0
}

func TestNewWindowsDoNotAskTheEngine(t *testing.T) {
	engine := memstore.New()
	w := openWindows(t, engine, 0)
	for _, key := range []string{"a", "b", "c"} {
		w.put(key, 10, false)
	}
	must(t, w.state.Commit(nil))
	w.put("d", 10, false)
	w.put("a", 10, true)
	w.put("a", 20, false)
	w.asked(0, "new windows")

	w.state.Abort() // a and d of window 10, a of window 20
	w.put("a", 10, true)
	w.put("b", 20, false)
	w.asked(2, "after an abort, for windows up to the latest one that it dropped")
	w.put("a", 30, false)
	w.asked(0, "windows after the aborted ones")
	must(t, w.state.Commit(nil))

	again := openWindows(t, engine, 0)
	again.put("a", 30, true)
	again.put("b", 30, false)
	again.asked(2, "windows of an earlier run")
	again.put("b", 40, false)
	again.asked(0, "a window that begins in this run")
}

func TestEvictedWindowsAreReadFromTheEngine(t *testing.T) {
	w := openWindows(t, memstore.New(), 1) // every clean entry but the last goes at once
	for _, key := range []string{"a", "b", "c", "d"} {
		w.put(key, 10, false)
	}
	must(t, w.state.Commit(nil))
	for _, key := range []string{"a", "b", "c", "d"} {
		w.put(key, 10, true)
	}
	if w.engine.gets == 0 {
		t.Error("nothing was evicted, so this tests nothing")
	}
}

func TestRestoredWindowsAreReadFromTheEngine(t *testing.T) {
	w := openWindows(t, memstore.New(), 0)
	changelogKey := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64([]byte("a"), 50), 0)
	must(t, w.state.Restore("w", []statestore.ChangelogRecord{{Key: changelogKey, Value: []byte("value"), Timestamp: 50}}, 1))
	w.put("a", 50, true)
	w.put("a", 60, false)
	w.asked(1, "the restored window and the next one")
}
