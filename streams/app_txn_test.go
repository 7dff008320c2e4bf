package streams_test

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"maps"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/streams"
)

// Keys of the requests that matter here.
const (
	initProducerID = 22
	endTxn         = 26
)

// faults is a dialer whose connections misbehave on order.
type faults struct {
	refuse  atomic.Bool // EndTxn does not reach the broker, until somebody initialises a producer
	swallow atomic.Bool // EndTxn reaches the broker, its answer is lost; later ones are refused
	decided atomic.Bool // a producer was initialised while EndTxn was refused
	outage  atomic.Bool // the refusal of EndTxn is the beginning of down
	down    atomic.Bool // nothing reaches the broker
}

var errFault = errors.New("injected fault")

func (f *faults) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if f.down.Load() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &faultyConn{Conn: conn, faults: f}, err
}

type faultyConn struct {
	net.Conn
	faults *faults
	deaf   atomic.Bool // the next answer is read and lost
}

// Write sees whole requests: the client writes each one at once.
func (c *faultyConn) Write(p []byte) (int, error) {
	var key uint16
	if len(p) >= 6 {
		key = binary.BigEndian.Uint16(p[4:])
	}
	if key == endTxn && c.faults.refuse.Load() && c.faults.outage.Load() {
		c.faults.down.Store(true)
	}
	switch {
	case c.faults.down.Load():
		c.Conn.Close()
		return 0, errFault
	case key == initProducerID && c.faults.refuse.CompareAndSwap(true, false):
		c.faults.decided.Store(true)
	case key != endTxn:
	case c.faults.swallow.CompareAndSwap(true, false):
		c.faults.refuse.Store(true)
		c.deaf.Store(true)
	case c.faults.refuse.Load():
		c.Conn.Close()
		return 0, errFault
	}
	return c.Conn.Write(p)
}

func (c *faultyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.deaf.Load() {
		c.Conn.Close()
		return 0, errFault
	}
	return n, err
}

// When the answer to the end of a transaction is lost, it may have been committed or not. Both are found out, and nothing is lost or
// counted twice.
func TestTransactionInDoubt(t *testing.T) {
	for _, fate := range []struct {
		name   string
		arm    func(*faults)
		aborts float64
	}{
		{"it was committed", func(f *faults) { f.swallow.Store(true) }, 0},
		{"it was not committed", func(f *faults) { f.refuse.Store(true) }, 1},
	} {
		t.Run(fate.name, func(t *testing.T) {
			streams.SetCommitTimeout(t, time.Second)
			f := newFixture(t)
			fault := new(faults)
			cfg := f.config("wc-0")
			cfg.Guarantee, cfg.Threads = streams.ExactlyOnce, 1
			cfg.KafkaOptions = []kgo.Opt{kgo.Dialer(fault.dial)}
			b, counts := f.wordCount()
			app := f.start(b, cfg)
			f.produce(poem...)
			f.countsUntil(poemCounts)

			fate.arm(fault)
			f.produce(poem...)
			f.eventually("the thread to initialise its producer again", fault.decided.Load)
			twice := maps.Clone(poemCounts)
			for w := range twice {
				twice[w] *= 2
			}
			f.countsUntil(twice)
			f.eventually("the state to equal the replay", func() bool {
				view, err := app.View(counts)
				if err != nil {
					t.Fatal(err)
				}
				rows, failed := view.All()
				got := maps.Collect(rows)
				if err := failed(); err != nil {
					t.Fatal(err)
				}
				return maps.Equal(got, twice)
			})
			if got := app.metric("millrace_transactions_aborted_total"); got != fate.aborts {
				t.Errorf("%v transactions were aborted, want %v", got, fate.aborts)
			}
			app.end()
		})
	}
}

// Brokers that restart while a transaction ends are waited for.
func TestBrokersAwayWhileATransactionEnds(t *testing.T) {
	f := newFixture(t)
	fault := new(faults)
	waiting := make(chan struct{}, 100)
	cfg := f.config("wc-0")
	cfg.Guarantee, cfg.Threads = streams.ExactlyOnce, 1
	cfg.KafkaOptions = []kgo.Opt{kgo.Dialer(fault.dial)}
	cfg.Logger = slog.New(slog.NewTextHandler(writerFunc(func(line []byte) (int, error) {
		if strings.Contains(string(line), "the brokers do not answer") {
			waiting <- struct{}{}
		}
		return len(line), nil
	}), nil))
	b, _ := f.wordCount()
	app := f.start(b, cfg)
	f.produce(poem...)
	f.countsUntil(poemCounts)

	fault.outage.Store(true)
	fault.refuse.Store(true)
	f.produce(poem...)
	select {
	case <-waiting:
	case err := <-app.done:
		t.Fatalf("the application ended: %v", err)
	case <-time.After(limit):
		t.Fatal("the thread did not come to ask brokers that are away")
	}
	fault.down.Store(false)
	twice := maps.Clone(poemCounts)
	for w := range twice {
		twice[w] *= 2
	}
	f.countsUntil(twice)
	app.end()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
