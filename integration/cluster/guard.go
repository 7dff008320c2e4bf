package cluster

import (
	"bytes"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// A guard is a client's connection as kfake sees it. kfake reads requests from it and writes whole responses to it, one
// request at a time; the guard lets only frames through that kfake can survive, and takes out those that are not for
// kfake. There is no goroutine between a client and kfake: the one in which kfake reads a frame is the one that reads the
// socket, and while it waits for the answer to a frame that was taken out, kfake reads nothing more, so answers keep the
// order of their requests, as a broker's do.
//
// A guard belongs to kfake's two goroutines of the connection: one calls Read, the other Write. Close is free for all.
type guard struct {
	net.Conn // the socket
	l        *listener
	host     string // as Kafka shows it: "/127.0.0.1"
	socket   *timedReader
	frames   frameReader

	left int          // what kfake may still read of the current frame, length prefix included; Read only
	held bytes.Reader // the frame, when it had to be collected first; Read only

	gone chan struct{}
	once sync.Once

	mu      sync.Mutex
	holds   charge    // the current frame, until it is answered or pending
	pending []pending // the requests that kfake has begun to read and has not answered; at most two, it reads one ahead
	closed  bool
	settled sync.Cond
}

// A pending request has its response before it.
type pending struct {
	after after
	holds charge
}

func newGuard(l *listener, nc net.Conn) *guard {
	g := &guard{Conn: nc, l: l, gone: make(chan struct{}), socket: &timedReader{Conn: nc}}
	g.settled.L = &g.mu
	g.frames = newFrameReader(g.socket)
	if host, _, err := net.SplitHostPort(nc.RemoteAddr().String()); err == nil {
		g.host = "/" + host
	}
	return g
}

// watch closes the connection when its client leaves while a request is parked, which nobody would see otherwise, since
// nothing is read meanwhile. A client that has sent on already is taken to be there. The caller ends the watch before it
// reads on.
func (g *guard) watch() (end func()) {
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_, err := g.frames.r.Peek(1)
		for errors.Is(err, os.ErrDeadlineExceeded) && !g.socket.interrupted.Load() {
			_, err = g.frames.r.Peek(1) // a request may park for longer than a connection may be idle
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			g.Close()
		}
	}()
	return func() {
		g.socket.interrupt()
		<-watched
		g.socket.resume()
	}
}

// answer has a frame answered that was taken out.
func (g *guard) answer(fr frame, raw []byte) (verdict, error) {
	if fr.key == keyJoinGroup || fr.key == keySyncGroup {
		defer g.watch()()
	}
	return g.l.router.answer(g.gone, g.host, fr, raw)
}

// Read gives kfake the next bytes of a frame that is for kfake.
func (g *guard) Read(p []byte) (int, error) {
	if g.left == 0 {
		if err := g.next(); err != nil {
			g.explain(err)
			g.release()
			return 0, err
		}
	}
	p = p[:min(len(p), g.left)]
	var n int
	var err error
	if g.held.Len() > 0 {
		n, err = g.held.Read(p)
	} else {
		n, err = g.frames.r.Read(p)
	}
	g.left -= n
	if err != nil {
		g.explain(err)
	}
	if g.left == 0 || err != nil {
		g.held.Reset(nil)
		g.release() // of a request without response
	}
	return n, err
}

// next reads on until a frame for kfake is at hand.
func (g *guard) next() error {
	for {
		g.socket.frame(g.frames.r.Buffered() > 0)
		fr, err := g.frames.peek()
		if err != nil {
			return err
		}
		g.socket.size(fr.size)
		to, err := g.l.router.route(fr)
		if err != nil {
			return err
		}
		if fr.key == keyFetch {
			if err := g.frames.capFetch(fr); err != nil {
				return err
			}
		}
		if to == toKfake && fr.size <= trustedFrame && g.take(&g.l.trusted, decodedSize(fr, fr.size)) {
			g.left = 4 + fr.size
			g.expect(fr, g.l.router.after(fr))
			return nil
		}
		passed, err := g.collect(fr, to)
		if passed || err != nil {
			return err
		}
		g.release()
	}
}

// collect reads a frame as a whole, and has it answered if it is not for kfake.
func (g *guard) collect(fr frame, to destination) (passed bool, err error) {
	raw, err := g.frames.take(fr, func(n int) bool { return g.take(&g.l.collected, decodedSize(fr, n)) })
	if err != nil {
		return false, err
	}
	if to == whole {
		if to, err = g.l.router.look(&fr, raw); err != nil {
			return false, err
		}
	}
	var v verdict
	if to != toKfake {
		if !g.settle() {
			return false, net.ErrClosed
		}
		if v, err = g.answer(fr, raw); err != nil {
			return false, err
		}
		if v.answer != nil {
			return false, g.send(v.answer)
		}
	}
	if v.after == nil {
		v.after = g.l.router.after(fr)
	}
	g.held.Reset(raw)
	g.left = len(raw)
	g.expect(fr, v.after)
	return true, nil
}

// send writes a response to the client, who must take it.
func (g *guard) send(response []byte) error {
	if err := g.SetWriteDeadline(time.Now().Add(transferTime(len(response)))); err != nil {
		return err
	}
	_, err := g.Conn.Write(response)
	return err
}

// take charges the current frame with n bytes if there is room.
func (g *guard) take(of *budget, n int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.closed && g.holds.take(of, n)
}

// release gives back what the current frame holds.
func (g *guard) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds.give()
}

// expect notes that kfake will answer.
func (g *guard) expect(fr frame, then after) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if fr.noReply || g.closed {
		return
	}
	g.pending = append(g.pending, pending{then, g.holds})
	g.holds = charge{}
}

// settle waits until kfake has answered what it has read, so that the next answer may be written.
func (g *guard) settle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.pending) > 0 && !g.closed {
		g.settled.Wait()
	}
	return !g.closed
}

// Write sends kfake's response. kfake writes one whole frame a call.
func (g *guard) Write(p []byte) (int, error) {
	g.mu.Lock()
	if len(g.pending) == 0 || g.closed {
		g.mu.Unlock()
		return 0, net.ErrClosed
	}
	request := g.pending[0]
	g.mu.Unlock()
	if request.after != nil {
		request.after(p)
	}
	if err := g.send(p); err != nil {
		return 0, err
	}
	g.mu.Lock()
	if !g.closed { // Close gives back what is pending
		g.pending[0].holds.give()
		g.pending = append(g.pending[:0], g.pending[1:]...)
	}
	g.mu.Unlock()
	g.settled.Broadcast()
	return len(p), nil
}

// Close ends the connection and everything that waits on its behalf.
func (g *guard) Close() error {
	err := net.ErrClosed
	g.once.Do(func() {
		close(g.gone)
		g.mu.Lock()
		g.closed = true
		g.holds.give()
		for i := range g.pending {
			g.pending[i].holds.give()
		}
		g.mu.Unlock()
		g.settled.Broadcast()
		g.l.untrack(g)
		err = g.Conn.Close()
	})
	return err
}

// explain says why a connection is closed when the client's bytes are the reason.
func (g *guard) explain(err error) {
	if !errors.Is(err, errFrame) {
		return
	}
	g.l.refused.Add(1)
	g.l.logger.Warn("connection closed", "client", g.RemoteAddr(), "reason", err)
}
