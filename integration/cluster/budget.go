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

	// maxTrusted bounds the short frames, which kfake reserves on the strength of their length alone.
	maxTrusted = 512 << 20

	// maxHeld bounds the frames that are collected as their bytes arrive, and the parked ones.
	maxHeld = 512 << 20

	// decodedFactor is how many times its bytes a request takes when it is decoded: an element of an array that takes two
	// or three bytes in the frame is a struct of fifty.
	decodedFactor = 16
)

// decodedSize is what n bytes of a frame are charged with until it is answered. A Produce request is nearly all records,
// which stay as they are.
func decodedSize(fr frame, n int) int {
	if fr.key == keyProduce {
		return n
	}
	return decodedFactor * n
}

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

// A charge is what one frame holds, of one budget or the other.
type charge struct {
	of *budget
	n  int64
}

func (c *charge) take(of *budget, n int) bool {
	if !of.take(n) {
		return false
	}
	c.of = of
	c.n += int64(n)
	return true
}

func (c *charge) give() {
	if c.of != nil {
		c.of.give(c.n)
	}
	*c = charge{}
}

// errHeld closes a connection whose frame would take all of them beyond what they may hold.
func errHeld(fr frame) error {
	return fmt.Errorf("%w: no room for %d bytes, the frames of all connections hold %d MiB; try again later", errFrame, fr.size, maxHeld>>20)
}
