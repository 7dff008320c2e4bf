package groupdiff

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A side is one of the two coordinators, with the requests that are under way to it.
type side struct {
	name string
	addr string

	mu      sync.Mutex
	conns   map[int]net.Conn
	answers map[int]kmsg.Response // by the number of the request
	failed  error                 // the first failure of a connection that we did not close
	arrived chan struct{}         // closed and renewed with each answer
}

func newSide(name, addr string) *side {
	return &side{name: name, addr: addr, conns: map[int]net.Conn{}, answers: map[int]kmsg.Response{}, arrived: make(chan struct{})}
}

// send sends a request on a connection of its own and does not wait.
func (s *side) send(number int, clientID string, req kmsg.Request) error {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.mu.Lock()
	s.conns[number] = conn
	s.mu.Unlock()
	if _, err := conn.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)).AppendRequest(nil, req, int32(number))); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	go s.receive(number, conn, req)
	return nil
}

// receive notes the answer; it ends with the connection.
func (s *side) receive(number int, conn net.Conn, req kmsg.Request) {
	resp, err := readResponse(conn, req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.conns[number]; !open {
		return // the sequence is over
	}
	delete(s.conns, number)
	conn.Close()
	if err != nil && s.failed == nil {
		s.failed = fmt.Errorf("%s: request %d (%s version %d): %w", s.name, number, kmsg.NameForKey(req.Key()), req.GetVersion(), err)
	}
	if err == nil {
		s.answers[number] = resp
	}
	close(s.arrived)
	s.arrived = make(chan struct{})
}

func readResponse(r io.Reader, req kmsg.Request) (kmsg.Response, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	if len(body) < 5 {
		return nil, fmt.Errorf("the answer has %d bytes", len(body))
	}
	body = body[4:] // the correlation id
	if req.IsFlexible() {
		body = body[1:] // no tags
	}
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	return resp, resp.ReadFrom(body)
}

// call sends a request and waits for its answer. Numbers below zero are not part of the comparison.
func (s *side) call(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := conn.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("groupdiff")).AppendRequest(nil, req, 0)); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	resp, err := readResponse(conn, req)
	if err != nil {
		return nil, fmt.Errorf("%s: %s version %d: %w", s.name, kmsg.NameForKey(req.Key()), req.GetVersion(), err)
	}
	return resp, nil
}

// answered returns the answer to a request, and a channel that is closed when another answer arrives.
func (s *side) answered(number int) (resp kmsg.Response, next <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[number], s.arrived, s.failed
}

// close ends what is still under way.
func (s *side) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for number, conn := range s.conns {
		conn.Close()
		delete(s.conns, number)
	}
}
