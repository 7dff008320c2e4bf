// Package storetest is the conformance suite for state engines: what [statestore.State] and its stores promise, checked
// over an engine against plain maps, through commits, aborts, restores, restarts and crashes.
//
// An engine is tested with
//
//	storetest.Run(t, func(t testing.TB) storetest.Disk { return … })
package storetest

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/millrace-io/millrace/statestore"
)

// Disk is where an engine keeps its data: what outlives the engine.
type Disk interface {
	// Open opens the engine on the disk. The engine before was closed.
	Open(t testing.TB) statestore.Engine
	// Crash returns the disk as it would be found if the process, or the machine, died now. The old disk and its
	// engine are not used again but for closing.
	Crash(t testing.TB) Disk
}

// Run runs the suite; newDisk returns an empty disk.
func Run(t *testing.T, newDisk func(t testing.TB) Disk) {
	t.Run("Engine", func(t *testing.T) { runEngine(t, newDisk) })
	t.Run("KeyValue", func(t *testing.T) { runKeyValue(t, newDisk) })
	t.Run("Window", func(t *testing.T) { runWindow(t, newDisk) })
	t.Run("Lifecycle", func(t *testing.T) { runLifecycle(t, newDisk) })
	t.Run("Readers", func(t *testing.T) { runReaders(t, newDisk) })
	t.Run("Model", func(t *testing.T) { runModel(t, newDisk) })
}

const (
	kvName     = "table"
	windowName = "windows"
	windowSize = 1_000
	retention  = 200_000 // more than two segments of at least a minute
)

var specs = []statestore.Spec{
	{Name: kvName, Kind: statestore.KeyValue, Logged: true},
	{Name: windowName, Kind: statestore.Window, Logged: true, WindowSize: windowSize, Retention: retention},
}

// task is an open state over a disk.
type task struct {
	t       testing.TB
	disk    Disk
	state   *statestore.State
	kv      statestore.KeyValueStore
	windows statestore.WindowStore
}

// smallCache makes evictions common.
const smallCache = 4 << 10

func openTask(t testing.TB, disk Disk) *task {
	t.Helper()
	state, err := statestore.OpenState(disk.Open(t), specs, statestore.StateOptions{CacheBytes: smallCache})
	must(t, err)
	kv, err := state.KeyValue(kvName)
	must(t, err)
	windows, err := state.Window(windowName)
	must(t, err)
	return &task{t: t, disk: disk, state: state, kv: kv, windows: windows}
}

// reopen closes the task cleanly and opens it again.
func (k *task) reopen() *task {
	k.t.Helper()
	must(k.t, k.state.Close(context.Background()))
	return openTask(k.t, k.disk)
}

// crash abandons the task and opens what is left on the disk.
func (k *task) crash() *task {
	k.t.Helper()
	after := k.disk.Crash(k.t)
	must(k.t, k.state.Close(context.Background())) // only to stop its goroutines; its disk is not looked at again
	return openTask(k.t, after)
}

func (k *task) put(key, value string, ts int64) {
	k.t.Helper()
	must(k.t, k.kv.Put([]byte(key), []byte(value), ts))
}

func (k *task) putWindow(key string, start int64, value string) {
	k.t.Helper()
	must(k.t, k.windows.Put([]byte(key), start, []byte(value), start+1))
}

func (k *task) commit(offsets ...statestore.Offset) {
	k.t.Helper()
	must(k.t, k.state.Commit(offsets))
}

func (k *task) close() {
	k.t.Helper()
	must(k.t, k.state.Close(context.Background()))
}

// get returns what describe says about the key.
func (k *task) get(key string) string {
	k.t.Helper()
	value, ts, ok, err := k.kv.Get([]byte(key))
	must(k.t, err)
	return describe(value, ts, ok)
}

func (k *task) getWindow(key string, start int64) string {
	k.t.Helper()
	value, ts, ok, err := k.windows.Get([]byte(key), start)
	must(k.t, err)
	return describe(value, ts, ok)
}

// describe returns "value@timestamp", or "absent".
func describe(value []byte, ts int64, ok bool) string {
	if !ok {
		return "absent"
	}
	if len(value) > 100 { // so that failures can be read
		return fmt.Sprintf("%s…%d bytes@%d", value[:10], len(value), ts)
	}
	return fmt.Sprintf("%s@%d", value, ts)
}

// ranged returns what Range shows, as "key=value@timestamp".
func (k *task) ranged(from, to []byte) []string {
	k.t.Helper()
	var got []string
	err := k.kv.Range(from, to, func(key, value []byte, ts int64) bool {
		got = append(got, fmt.Sprintf("%q=%s", key, describe(value, ts, true)))
		return true
	})
	must(k.t, err)
	return got
}

// fetched returns what Fetch shows, as "start=value@timestamp".
func (k *task) fetched(key string, from, to int64) []string {
	k.t.Helper()
	var got []string
	err := k.windows.Fetch([]byte(key), from, to, func(start int64, value []byte, ts int64) bool {
		got = append(got, fmt.Sprintf("%d=%s", start, describe(value, ts, true)))
		return true
	})
	must(k.t, err)
	return got
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expect(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

func expectList(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func repeated(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }
