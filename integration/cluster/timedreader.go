package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
)

const (
	// idleTimeout closes a connection on which no request arrives, as Kafka's connections.max.idle.ms does.
	idleTimeout = 10 * time.Minute

	// frameTimeout is how long a frame may take from its first byte to its last, and a response to be taken, with a second
	// more for each slowestRate of its bytes. Kafka has no such bound; here half a frame would keep what it holds.
	frameTimeout = 30 * time.Second
	slowestRate  = 64 << 10
)

// transferTime is how long a frame of n bytes may take.
func transferTime(n int) time.Duration {
	return frameTimeout + time.Duration(n/slowestRate)*time.Second
}

// A timedReader reads from the socket no longer than the client may take.
type timedReader struct {
	net.Conn
	interrupted atomic.Bool
	due         time.Time // when the frame that has begun must be here; zero between two frames
}

// frame says that the next byte begins a frame, and whether that has been read already.
func (r *timedReader) frame(begun bool) {
	r.due = time.Time{}
	if begun {
		r.due = time.Now().Add(frameTimeout)
	}
}

// size says how long the frame is that has begun.
func (r *timedReader) size(n int) { r.due = r.due.Add(transferTime(n) - frameTimeout) }

func (r *timedReader) Read(p []byte) (int, error) {
	due := r.due
	if due.IsZero() {
		due = time.Now().Add(idleTimeout)
	}
	if err := r.SetReadDeadline(due); err != nil {
		return 0, err
	}
	if r.interrupted.Load() { // in case interrupt came before the line above
		return 0, os.ErrDeadlineExceeded
	}
	n, err := r.Conn.Read(p)
	switch {
	case r.due.IsZero() && n > 0:
		r.due = time.Now().Add(frameTimeout)
	case !r.due.IsZero() && errors.Is(err, os.ErrDeadlineExceeded) && !r.interrupted.Load():
		err = fmt.Errorf("%w: it began and did not end in time", errFrame)
	}
	return n, err
}

// interrupt ends a read that is under way, until resume.
func (r *timedReader) interrupt() {
	r.interrupted.Store(true)
	_ = r.SetReadDeadline(time.Unix(1, 0)) // fails only when the connection is closed, and so is the read
}

func (r *timedReader) resume() { r.interrupted.Store(false) }
