package streams_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A forger sits on the connections of a client and changes the answers to requests of some kinds. The brokers know nothing of it.
type forger map[kmsg.Key]func(kmsg.Response)

// option makes a client connect through the forger.
func (f forger) option() kgo.Opt {
	return kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &forgedConn{Conn: conn, forger: f, waiting: map[int32]kmsg.Request{}}, nil
	})
}

// forgedConn reads whole answers, so that they can be changed, and hands them on in the pieces that are asked for.
type forgedConn struct {
	net.Conn
	forger  forger
	mu      sync.Mutex
	waiting map[int32]kmsg.Request // by correlation id, written by Write
	ready   []byte                 // what Read has and the client has not
}

// Write notes the request. The client writes each in one piece: size, key, version, correlation id, and the rest.
func (c *forgedConn) Write(p []byte) (int, error) {
	key, version, id := int16(binary.BigEndian.Uint16(p[4:])), int16(binary.BigEndian.Uint16(p[6:])), int32(binary.BigEndian.Uint32(p[8:]))
	if c.forger[kmsg.Key(key)] != nil {
		req := kmsg.RequestForKey(key)
		req.SetVersion(version)
		c.mu.Lock()
		c.waiting[id] = req
		c.mu.Unlock()
	}
	return c.Conn.Write(p)
}

func (c *forgedConn) Read(p []byte) (int, error) {
	if len(c.ready) == 0 {
		if err := c.readAnswer(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

func (c *forgedConn) readAnswer() error {
	size := make([]byte, 4)
	if _, err := io.ReadFull(c.Conn, size); err != nil {
		return err
	}
	body := make([]byte, binary.BigEndian.Uint32(size))
	if _, err := io.ReadFull(c.Conn, body); err != nil {
		return err
	}
	id := int32(binary.BigEndian.Uint32(body))
	c.mu.Lock()
	req := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	if req != nil {
		header := 4
		if req.IsFlexible() && req.Key() != kmsg.ApiVersions.Int16() { // its answer must be read by who does not know the version
			header++ // no tags
		}
		resp := req.ResponseKind()
		resp.SetVersion(req.GetVersion())
		if err := resp.ReadFrom(body[header:]); err != nil {
			return fmt.Errorf("forging an answer: %w", err)
		}
		c.forger[kmsg.Key(req.Key())](resp)
		body = resp.AppendTo(body[:header:header])
	}
	c.ready = append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	return nil
}
