package streams_test

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/streams"
)

// Closing takes bounded time when the brokers are away, with work that cannot be committed any more. What there is to say is that the
// stop was not graceful, or with Leave that the places are kept. The work is done again by the next start.
func TestCloseWhileBrokersAreAway(t *testing.T) {
	for _, close := range []struct {
		name       string
		membership streams.Membership
		mode       streams.CloseMode
	}{
		{"static default", streams.Static, streams.CloseDefault},
		{"static leave", streams.Static, streams.Leave},
		{"dynamic default", streams.Dynamic, streams.CloseDefault},
		{"dynamic remain", streams.Dynamic, streams.Remain},
	} {
		t.Run(close.name, func(t *testing.T) {
			guarantees(t, func(t *testing.T, g streams.Guarantee) {
				streams.SetLeaveTimeout(t, time.Second)
				f := newFixture(t)
				fault := new(faults)
				cfg := f.config("wc-0")
				cfg.Membership, cfg.CloseMode, cfg.Guarantee = close.membership, close.mode, g
				cfg.CommitInterval, cfg.TransactionTimeout, cfg.CloseTimeout = 10*time.Minute, 11*time.Minute, time.Second
				plain := cfg
				cfg.KafkaOptions = []kgo.Opt{kgo.Dialer(fault.dial)}
				b, _ := f.wordCount()
				app := f.start(b, cfg)
				f.settled(8, app)
				f.produce(poem...)
				f.eventually("work to commit", func() bool { return app.metric("millrace_records_processed_total") >= float64(len(poem)) })
				fault.down.Store(true)
				began := time.Now()
				app.stop()
				err := app.wait()
				if took := time.Since(began); took > cfg.CloseTimeout+5*time.Second {
					t.Errorf("closing took %v", took)
				}
				if e, ok := errors.AsType[*streams.Error](err); ok && e.Kind == streams.KindStuck {
					mentions(t, e, "CloseTimeout (1s)", "the brokers do not answer", "processed again")
				} else if ok && e.Kind == streams.KindBroker && close.mode == streams.Leave {
					mentions(t, e, "LeaveGroup")
				} else if err != nil || close.mode == streams.Leave {
					t.Errorf("closing ended with %v", err)
				}
				if close.membership == streams.Dynamic {
					return // the next start would wait for the end of the sessions
				}
				plain.CommitInterval = 50 * time.Millisecond
				b, _ = f.wordCount()
				app = f.start(b, plain)
				if g == streams.ExactlyOnce { // at-least-once has counted some of it twice
					f.countsUntil(poemCounts)
				}
				app.end()
			})
		})
	}
}
