package cluster

import (
	"fmt"
	"sync/atomic"
)

// What connections may hold, all together. Nobody gets near these limits in development; they are there so that garbage,
// and clients that send half a frame and stop, cost a bounded amount of memory.
const (
	// maxConnections bounds the read buffers, and kfake's two goroutines a connection.
	maxConnections = 4096

	// maxTrusted bounds what kfake reserves for frames on the strength of their length alone.
	maxTrusted = 64 << 20

	// maxHeld bounds the frames that are collected as their bytes arrive, and the parked ones.
	maxHeld = 512 << 20
)

// A budget counts bytes that are held against a limit. It is safe for concurrent use.
type budget struct {
	limit int64
	held  atomic.Int64
}

// take reports whether there was room for n more.
func (b *budget) take(n int) bool {
	if b.held.Add(int64(n)) > b.limit {
		b.held.Add(-int64(n))
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.held.Add(-n) }

// A charge is what one connection holds. Its reader takes; give may be called by others, and counts once.
type charge struct {
	of   *budget
	held atomic.Int64
}

func (c *charge) take(n int) bool {
	if !c.of.take(n) {
		return false
	}
	c.held.Add(int64(n))
	return true
}

func (c *charge) give() {
	if c.held.Load() != 0 {
		c.of.give(c.held.Swap(0))
	}
}

// errHeld closes a connection whose frame would take all of them beyond what they may hold.
func errHeld(fr frame) error {
	return fmt.Errorf("%w: no room for %d bytes, the frames of all connections hold %d MiB; try again later", errFrame, fr.size, maxHeld>>20)
}
