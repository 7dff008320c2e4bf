package pebblestore

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace-io/millrace/statestore"
)

// minFree is how much room the disk must have until writing goes on: enough for a manifest record and a small table, so
// that what waited does not fail at once again.
const minFree = 1 << 20

// diskGate holds all writes of the process's databases while their disk is full. pebble by itself would retry failed
// flushes at once and for ever, and a manifest that cannot be written is fatal to it; held writes fail in neither way and
// go on when there is room.
//
// The wait ends early where it cannot help: the disk says that it has room (then something else than space is short, and
// the write fails), it cannot be asked, or a store is closing, which pebble only does when its writes come to an end.
type diskGate struct {
	fs    vfs.FS
	pause time.Duration
	tell  func()
	fulls atomic.Int64 // writes that met a full disk

	mu      sync.Mutex
	dirs    map[string]int // directories of open stores
	closing int
	full    bool
	began   chan struct{} // closed when the disk is found full; a new one when it has room again
}

func newDiskGate(fs vfs.FS, pause time.Duration, tell func()) *diskGate {
	return &diskGate{fs: fs, pause: pause, tell: tell, dirs: map[string]int{}, began: make(chan struct{})}
}

// onDiskFull runs, once for all, while every write to the file system waits for its return.
func (g *diskGate) onDiskFull() {
	g.fulls.Add(1)
	g.set(true)
	if g.tell != nil {
		g.tell()
	}
	for {
		time.Sleep(g.pause)
		if !g.worthWaiting() {
			break
		}
	}
	g.set(false)
}

func (g *diskGate) set(full bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.full = full
	if full {
		close(g.began)
	} else {
		g.began = make(chan struct{})
	}
}

// worthWaiting says whether the disk of an open store is still full.
func (g *diskGate) worthWaiting() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing > 0 {
		return false
	}
	for dir := range g.dirs {
		if usage, err := g.fs.GetDiskUsage(dir); err == nil && usage.AvailBytes < minFree {
			return true
		}
	}
	return false
}

// check reports a full disk; began is closed when it is found full later.
func (g *diskGate) check(op, dir string) (began <-chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.full {
		return nil, fullError(op, dir)
	}
	return g.began, nil
}

func fullError(op, dir string) error {
	return &statestore.StoreError{Op: op, Dir: dir, Err: syscall.ENOSPC, Hint: hintDiskFull, Stalled: true}
}

func (g *diskGate) opened(dir string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dirs[dir]++
}

func (g *diskGate) closeBegins() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closing++
}

func (g *diskGate) closeEnds(dir string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closing--
	if g.dirs[dir]--; g.dirs[dir] == 0 {
		delete(g.dirs, dir)
	}
}
