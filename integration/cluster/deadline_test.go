package cluster

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// passing is a router that leaves everything to kfake.
type passing struct{}

func (passing) route(frame) (destination, error)         { return toKfake, nil }
func (passing) look(*frame, []byte) (destination, error) { return toKfake, nil }
func (passing) after(frame) after                        { return nil }
func (passing) answer(<-chan struct{}, string, frame, []byte) (verdict, error) {
	return verdict{}, nil
}

// pipeGuard is a guard with its client at the other end of a pipe. It must be made in a bubble of synctest.
func pipeGuard() (*guard, net.Conn) {
	client, server := net.Pipe()
	l := &listener{
		logger: slog.New(slog.DiscardHandler), router: passing{}, guards: map[*guard]struct{}{},
		trusted: budget{limit: maxTrusted}, collected: budget{limit: maxHeld},
	}
	return newGuard(l, server), client
}

// readUntilError reads as kfake does, and says how long that took and what it was.
func (g *guard) readUntilError() (time.Duration, error) {
	start := time.Now()
	_, err := io.Copy(io.Discard, readerOnly{g})
	return time.Since(start), err
}

type readerOnly struct{ io.Reader }

// TestFrameOnceBegunMustEnd: whoever sends a part of a frame and then byte after byte, or nothing, is cut off when its
// time is over, and what it held is given back. A larger frame has longer. Between frames a client may think.
func TestFrameOnceBegunMustEnd(t *testing.T) {
	small, large := encode(kmsg.NewPtrMetadataRequest(), 1), encode(kmsg.NewPtrMetadataRequest(), 1)
	large[1] = 0x10 // a mebibyte
	for name, tc := range map[string]struct {
		send  []byte
		pause time.Duration // between two bytes
		want  time.Duration
		frame bool // that one is blamed
	}{
		"nothing":            {want: idleTimeout},
		"one byte":           {send: small[:1], want: frameTimeout, frame: true},
		"half the header":    {send: small[:6], want: frameTimeout, frame: true},
		"all but one":        {send: small[:len(small)-1], want: frameTimeout, frame: true},
		"drop by drop":       {send: small[:8], pause: 5 * time.Second, want: frameTimeout, frame: true},
		"a whole one":        {send: small, want: idleTimeout},
		"two, and half":      {send: append(append([]byte{}, small...), small[:5]...), want: frameTimeout, frame: true},
		"part of a large":    {send: large, want: frameTimeout + 16*time.Second, frame: true},
		"late, then nothing": {send: small, pause: time.Second, want: idleTimeout + time.Duration(len(small)-1)*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, client := pipeGuard()
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for i, b := range tc.send {
						if i > 0 && tc.pause > 0 {
							time.Sleep(tc.pause)
						}
						if _, err := client.Write([]byte{b}); err != nil {
							return
						}
					}
				}()
				took, err := g.readUntilError()
				if took != tc.want || errors.Is(err, errFrame) != tc.frame {
					t.Errorf("cut off after %v with %v, want %v", took, err, tc.want)
				}
				if refused := g.l.refused.Load(); refused > 1 || (refused == 1) != tc.frame {
					t.Errorf("counted %d times", refused)
				}
				g.Close()
				<-sent
				if held := g.l.trusted.held.Load() + g.l.collected.held.Load(); held != 0 {
					t.Errorf("%d bytes are still held", held)
				}
			})
		})
	}
}

// TestResponseMustBeTaken: a client that does not read its response is cut off.
func TestResponseMustBeTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, client := pipeGuard()
		defer g.Close()
		go client.Write(encode(kmsg.NewPtrMetadataRequest(), 1))
		if _, err := io.ReadFull(g, make([]byte, len(encode(kmsg.NewPtrMetadataRequest(), 1)))); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := g.Write(make([]byte, 3*slowestRate)); err == nil || time.Since(start) != frameTimeout+3*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}
