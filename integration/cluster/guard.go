package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// idleTimeout closes a connection on which nothing arrives, as Kafka's connections.max.idle.ms does. It also bounds how
// long an unfinished frame may take between two of its bytes.
const idleTimeout = 10 * time.Minute

// A router decides what becomes of a frame.
type router interface {
	// route is asked once a frame, before its body is read. An error closes the connection.
	route(fr frame) (destination, error)

	// answer handles a frame for which route said local or inspect; raw is the whole frame. Without an answer the frame
	// goes to kfake. It may block as long as a JoinGroup parks; gone is closed when the connection is.
	answer(gone <-chan struct{}, host string, fr frame, raw []byte) (verdict, error)

	// after returns what is to be done between kfake's answer to a request and the client's sight of it.
	after(fr frame) after
}

type destination uint8

const (
	toKfake destination = iota
	local               // answered by the router
	inspect             // the router looks at the body first
)

// An after is given the whole response frame.
type after func(response []byte)

// A verdict is what a router makes of a frame that it has looked into.
type verdict struct {
	answer []byte // a whole response frame; nil passes the request on to kfake
	after  after  // of a request that is passed on; nil means router.after
}

// A guard is a client's connection as kfake sees it. kfake reads requests from it and writes whole responses to it, one
// request at a time; the guard lets only frames through that kfake can survive, and takes out those that are not for
// kfake. There is no goroutine and no copy between a client and kfake: the goroutine in which kfake reads a frame is the
// one that reads the socket, and while it waits for the answer to a frame that was taken out, kfake reads nothing more,
// so answers keep the order of their requests, as a broker's do.
//
// A guard belongs to kfake's two goroutines of the connection: one calls Read, the other Write. Close is free for all.
type guard struct {
	net.Conn // the socket
	l        *listener
	host     string // as Kafka shows it: "/127.0.0.1"
	socket   *idleReader
	frames   frameReader

	left int          // what kfake may still read of the current frame, length prefix included; Read only
	held bytes.Reader // the frame, when it had to be collected first; Read only

	trusted   charge // the frame that kfake reads from the socket
	collected charge // the frame that was collected

	gone chan struct{}
	once sync.Once

	mu      sync.Mutex
	pending []after // what to do after each request that kfake has read and not answered; at most two, it reads one ahead
	closed  bool
	settled sync.Cond
}

func newGuard(l *listener, nc net.Conn) *guard {
	g := &guard{Conn: nc, l: l, gone: make(chan struct{}), socket: &idleReader{Conn: nc}}
	g.settled.L = &g.mu
	g.trusted.of, g.collected.of = &l.trusted, &l.collected
	g.frames = newFrameReader(g.socket)
	g.frames.offsetsID = l.offsetsID
	if host, _, err := net.SplitHostPort(nc.RemoteAddr().String()); err == nil {
		g.host = "/" + host
	}
	return g
}

// idleReader moves the read deadline ahead with each read of the socket.
type idleReader struct {
	net.Conn
	interrupted atomic.Bool
}

func (r *idleReader) Read(p []byte) (int, error) {
	if err := r.SetReadDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	if r.interrupted.Load() { // in case interrupt came before the line above
		return 0, os.ErrDeadlineExceeded
	}
	return r.Conn.Read(p)
}

// interrupt ends a read that is under way, until resume.
func (r *idleReader) interrupt() {
	r.interrupted.Store(true)
	_ = r.SetReadDeadline(time.Unix(1, 0)) // fails only when the connection is closed, and so is the read
}

func (r *idleReader) resume() { r.interrupted.Store(false) }

// watch closes the connection when its client leaves while a request is parked, which nobody would see otherwise, since
// nothing is read meanwhile. A client that has sent on already is taken to be there. The caller ends the watch before it
// reads on.
func (g *guard) watch() (end func()) {
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if _, err := g.frames.r.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
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
			g.settleCharges()
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
	if g.left == 0 || err != nil {
		g.settleCharges()
	}
	return n, err
}

// settleCharges gives back what the current frame holds: kfake has it all, or will not get it.
func (g *guard) settleCharges() {
	g.held.Reset(nil)
	g.trusted.give()
	g.collected.give()
}

// next reads on until a frame for kfake is at hand.
func (g *guard) next() error {
	for {
		fr, err := g.frames.peek()
		if err != nil {
			return err
		}
		to, err := g.l.router.route(fr)
		if err != nil {
			return err
		}
		if to == toKfake && fr.size <= trustedFrame && fr.offsets != unsure && g.trusted.take(fr.size) {
			return g.pass(fr)
		}
		passed, err := g.collect(fr, to)
		if passed || err != nil {
			return err
		}
		g.settleCharges()
	}
}

// pass lets kfake read the frame from the socket.
func (g *guard) pass(fr frame) error {
	g.left = 4 + fr.size
	g.expect(fr, g.l.router.after(fr))
	return nil
}

// collect reads a frame as a whole, and has it answered if it is not for kfake.
func (g *guard) collect(fr frame, to destination) (passed bool, err error) {
	raw, err := g.frames.take(fr, &g.collected)
	if err != nil {
		return false, err
	}
	if fr.offsets == unsure {
		fr.offsets = unmentioned
		if err := g.frames.lookIntoBytes(raw, &fr); err != nil {
			return false, err
		}
		if to, err = g.l.router.route(fr); err != nil {
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
			_, err := g.Conn.Write(v.answer)
			return false, err
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

// expect notes that kfake will answer.
func (g *guard) expect(fr frame, then after) {
	if fr.noReply {
		return
	}
	g.mu.Lock()
	g.pending = append(g.pending, then)
	g.mu.Unlock()
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
	then := g.pending[0]
	g.mu.Unlock()
	if then != nil {
		then(p)
	}
	n, err := g.Conn.Write(p)
	g.mu.Lock()
	g.pending = append(g.pending[:0], g.pending[1:]...)
	g.mu.Unlock()
	g.settled.Broadcast()
	return n, err
}

// Close ends the connection and everything that waits on its behalf.
func (g *guard) Close() error {
	err := net.ErrClosed
	g.once.Do(func() {
		close(g.gone)
		g.mu.Lock()
		g.closed = true
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

var _ io.ReadWriteCloser = (*guard)(nil)

// errRefused builds the error that closes a connection for a request nobody here serves.
func errRefused(fr frame, why string) error {
	return fmt.Errorf("%w: request key %d version %d %s", errFrame, fr.key, fr.version, why)
}
