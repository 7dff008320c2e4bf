package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// count is how many clients are connected.
func (l *listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.guards)
}

// TestBytesHeldAreBounded: clients that send large frames in part and stop hold no more than the limit together; who
// would take more is cut off, and whoever comes with small frames is served.
func TestBytesHeldAreBounded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Start(Topic("lines", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := c.listener
	const limit = 4 << 20
	l.trusted.limit, l.collected.limit = limit, limit // nobody is connected yet
	half := func(announced, sent int) net.Conn {
		nc, err := net.Dial("tcp", c.Brokers()[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		raw := binary.BigEndian.AppendUint32(nil, uint32(announced))
		raw = append(raw, encode(kmsg.NewPtrMetadataRequest(), 1)[4:]...)
		raw = append(raw, make([]byte, max(0, sent-len(raw)))...)
		if _, err := nc.Write(raw[:sent]); err != nil && sent < trustedFrame {
			t.Fatal(err)
		}
		return nc
	}
	var liars []net.Conn
	for range 10 { // kfake would reserve what they announce
		liars = append(liars, half(trustedFrame, 20))
	}
	for range 10 {
		liars = append(liars, half(10<<20, 1<<20))
	}
	until(ctx, t, "some of them to be refused", func() bool { return c.Refused() > 0 })
	if trusted, collected := l.trusted.held.Load(), l.collected.held.Load(); trusted > limit || collected > limit {
		t.Errorf("%d and %d bytes are held, the limit is %d", trusted, collected, limit)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "lines", Value: []byte("v")}).FirstErr(); err != nil {
		t.Errorf("a well-behaved client: %v", err)
	}
	for _, nc := range liars {
		nc.Close()
	}
	cl.Close()
	until(ctx, t, "everything to be given back", func() bool {
		return l.count() == 0 && l.trusted.held.Load() == 0 && l.collected.held.Load() == 0
	})
}

// TestSlowAndHalfOpenConnections: who sends a byte now and then, and who sends half a frame and nothing more, disturbs
// nobody; the slow one gets its answer in the end.
func TestSlowAndHalfOpenConnections(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Start(Topic("lines", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	metadata := encode(kmsg.NewPtrMetadataRequest(), 5)
	const many = 50
	var slow, open []net.Conn
	for i := range 2 * many {
		nc, err := net.Dial("tcp", c.Brokers()[0])
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if i%2 == 0 {
			slow = append(slow, nc)
			continue
		}
		open = append(open, nc)
		if _, err := nc.Write(metadata[:1+i/2%(len(metadata)-1)]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range metadata {
		for _, nc := range slow {
			if _, err := nc.Write(metadata[i : i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "lines", Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatalf("a well-behaved client, %d bytes in: %v", i, err)
		}
	}
	for _, nc := range slow {
		var answer [8]byte
		if err := nc.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(nc, answer[:]); err != nil || binary.BigEndian.Uint32(answer[4:]) != 5 {
			t.Fatalf("a slow client's answer: % x, %v", answer, err)
		}
	}
	for _, nc := range append(slow, open...) {
		nc.Close()
	}
	until(ctx, t, "only the client to be left", func() bool { return c.listener.count() <= 3 })
}

// TestTooManyConnections: one too many is closed and counted, and there is room again when another has gone.
func TestTooManyConnections(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.listener.mu.Lock()
	c.listener.connections = 2
	c.listener.mu.Unlock()
	dial := func() net.Conn {
		nc, err := net.Dial("tcp", c.Brokers()[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		return nc
	}
	first := dial()
	dial()
	until(ctx, t, "both to be let in", func() bool { return c.listener.count() == 2 })
	third := dial()
	if err := third.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := third.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the third connection: %v", err)
	}
	if c.Refused() != 1 {
		t.Errorf("%d connections refused", c.Refused())
	}
	first.Close()
	until(ctx, t, "one to have gone", func() bool { return c.listener.count() == 1 })
	dial()
	until(ctx, t, "another to be let in", func() bool { return c.listener.count() == 2 })
}
