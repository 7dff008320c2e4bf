package streams_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/streams"
)

// fence makes an answer say FENCED_INSTANCE_ID.
func fence(resp kmsg.Response) {
	code := kerr.FencedInstanceID.Code
	switch r := resp.(type) {
	case *kmsg.JoinGroupResponse:
		r.ErrorCode = code
	case *kmsg.SyncGroupResponse:
		r.ErrorCode = code
	case *kmsg.HeartbeatResponse:
		r.ErrorCode = code
	case *kmsg.LeaveGroupResponse:
		for i := range r.Members {
			r.Members[i].ErrorCode = code
		}
	case *kmsg.OffsetCommitResponse:
		for _, t := range r.Topics {
			for i := range t.Partitions {
				t.Partitions[i].ErrorCode = code
			}
		}
	case *kmsg.TxnOffsetCommitResponse:
		for _, t := range r.Topics {
			for i := range t.Partitions {
				t.Partitions[i].ErrorCode = code
			}
		}
	}
}

// commits is the request that commits offsets under a guarantee.
func commits(g streams.Guarantee) kmsg.Key {
	if g == streams.ExactlyOnce {
		return kmsg.TxnOffsetCommit
	}
	return kmsg.OffsetCommit
}

// fencedRequests are the requests that may be answered with FENCED_INSTANCE_ID under a guarantee.
func fencedRequests(g streams.Guarantee) []kmsg.Key {
	return []kmsg.Key{kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.LeaveGroup, commits(g)}
}

// fencing is an application with one thread whose requests of one kind are answered with FENCED_INSTANCE_ID from some moment on.
type fencing struct {
	*fixture
	key   kmsg.Key
	cfg   streams.Config
	wire  *wire
	armed atomic.Bool
	heard chan struct{} // closed when the group's driver has said that it is fenced
	joins atomic.Int64  // how many JoinGroup requests there were when the application said that it ends
	log   bytes.Buffer  // the handler locks it, and nothing is logged after the end
}

func newFencing(t *testing.T, g streams.Guarantee, key kmsg.Key, also forger) *fencing {
	f := &fencing{fixture: newFixture(t), key: key, heard: make(chan struct{})}
	f.cfg = f.config("wc-0")
	f.cfg.Threads, f.cfg.CloseMode, f.cfg.Guarantee = 1, streams.Leave, g
	f.cfg.OnThreadError = func(*streams.Error) streams.ThreadDecision { return streams.ReplaceThread }
	var once sync.Once
	f.cfg.Logger = slog.New(slog.NewTextHandler(writerFunc(func(line []byte) (int, error) {
		if bytes.Contains(line, []byte("gone for good")) {
			once.Do(func() { close(f.heard) })
		}
		return f.log.Write(line)
	}), nil))
	f.wire = watched(&f.cfg)
	forged := forger{}
	maps.Copy(forged, also)
	forged[key] = func(resp kmsg.Response) {
		if f.armed.Load() {
			fence(resp)
		}
	}
	f.cfg.KafkaOptions = append(f.cfg.KafkaOptions, forged.option())
	return f
}

// launch starts the application.
func (f *fencing) launch() *running {
	b, _ := f.wordCount()
	f.cfg.OnStateChange = func(_, to streams.State) {
		if to == streams.PendingError {
			f.joins.Store(f.wire.sent[kmsg.JoinGroup.Int16()].Load())
		}
	}
	return f.start(b, f.cfg)
}

// disturb starts another process, so that the group rebalances.
func (f *fencing) disturb() {
	b, _ := f.wordCount()
	f.start(b, f.config("wc-1"))
}

// ended holds what everybody is told by an application that was fenced, and that it did not join again.
func (f *fencing) ended(app *running) {
	f.Helper()
	const id = "wc-0-StreamThread-1-consumer"
	e := as(f.T, app.wait(), streams.KindFenced)
	fenced, ok := errors.AsType[*membership.FencedError](e)
	if !ok || fenced.InstanceID != id || fenced.Group != f.app || string(fenced.Request) != f.key.Name() {
		f.Errorf("the error is %#v", fenced)
	}
	mentions(f.T, e, id, fmt.Sprintf("group %q", f.app), "FENCED_INSTANCE_ID to "+f.key.Name(), "a client id of its own")
	if !strings.Contains(f.log.String(), "FENCED_INSTANCE_ID") {
		f.Errorf("the log does not tell:\n%s", &f.log)
	}
	if f.key != kmsg.LeaveGroup { // then the thread had ended already, and nothing else follows
		if n := f.wire.sent[kmsg.JoinGroup.Int16()].Load(); n != f.joins.Load() {
			f.Errorf("the process joined %d times after it was fenced", n-f.joins.Load())
		}
		if threads := app.Threads(); len(threads) != 1 || threads[0].State != "DEAD" || !threads[0].Fenced {
			f.Errorf("the threads are %+v", threads)
		}
	}
	if got := app.State(); got != streams.Failed {
		f.Errorf("the state is %v", got)
	}
	for path, want := range map[string]int{"/readyz": 503, "/livez": 503, "/v1/instances": 200} {
		w := httptest.NewRecorder()
		app.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			f.Errorf("%s answers %d, want %d", path, w.Code, want)
		}
		if path == "/v1/instances" && f.key != kmsg.LeaveGroup && !strings.Contains(w.Body.String(), `"fenced": true`) {
			f.Errorf("%s does not tell that the instance was fenced: %s", path, w.Body)
		}
	}
}

// Promise P6: FENCED_INSTANCE_ID in answer to any request, at any time, ends the application with an error that says which instance of
// which group was fenced, and what to do. The thread does not join again, and is not replaced.
func TestFencedByAnyAnswer(t *testing.T) {
	guarantees(t, func(t *testing.T, g streams.Guarantee) {
		for _, key := range fencedRequests(g) {
			t.Run(key.Name(), func(t *testing.T) {
				f := newFencing(t, g, key, nil)
				f.armed.Store(true)
				f.produce(poem...)
				app := f.launch()
				if key == kmsg.LeaveGroup { // only a member that stops sends it
					f.settled(8, app)
					f.countsUntil(poemCounts)
					app.stop()
				}
				f.ended(app)
				if n := f.wire.sent[kmsg.JoinGroup.Int16()].Load(); n != 1 {
					t.Errorf("%d JoinGroup requests were sent, want 1", n)
				}
			})
		}
	})
}

func TestFencedInARebalance(t *testing.T) {
	guarantees(t, func(t *testing.T, g streams.Guarantee) {
		for _, key := range fencedRequests(g) {
			t.Run(key.Name(), func(t *testing.T) {
				f := newFencing(t, g, key, nil)
				app := f.launch()
				before := f.settled(8, app)
				f.produce(poem...)
				f.countsUntil(poemCounts)
				if key == kmsg.LeaveGroup {
					f.disturb()
					f.eventually("the rebalance", func() bool { return app.reached(before + 1) })
					f.armed.Store(true)
					app.stop()
				} else {
					f.armed.Store(true)
					f.disturb()
					f.produce(poem...)
				}
				f.ended(app)
			})
		}
	})
}

// The thread makes its last commit when it hears that it is fenced, by this very commit or by anything else.
func TestFencedWhileClosing(t *testing.T) {
	guarantees(t, func(t *testing.T, g streams.Guarantee) {
		// What the last commit waits for, and how many records make that it does: under exactly-once words are read when they
		// are committed.
		slow, records := kmsg.Produce, 12
		if g == streams.ExactlyOnce {
			slow, records = kmsg.EndTxn, len(poem)
		}
		for _, key := range fencedRequests(g) {
			t.Run(key.Name(), func(t *testing.T) {
				committing := make(chan struct{}, 100)
				var f *fencing
				f = newFencing(t, g, key, forger{slow: func(kmsg.Response) {
					if f.armed.Load() && key != commits(g) && key != kmsg.LeaveGroup {
						committing <- struct{}{}
						<-f.heard
					}
				}})
				f.cfg.CommitInterval, f.cfg.TransactionTimeout = 10*time.Minute, 11*time.Minute // so that only the last commit commits
				app := f.launch()
				f.settled(8, app)
				f.produce(poem...)
				f.eventually("work to commit", func() bool { return app.metric("millrace_records_processed_total") >= float64(records) })
				f.armed.Store(true)
				app.stop()
				if key == kmsg.JoinGroup || key == kmsg.SyncGroup {
					<-committing
					f.disturb()
				}
				f.ended(app)
			})
		}
	})
}

// S131: two processes run with one client id. The older one stops, the newer one goes on, and neither joins a second time: they do not
// trade the id. Each process has two threads, so each instance is joined twice in all.
func TestTwoProcessesDoNotTradeAnInstance(t *testing.T) {
	guarantees(t, func(t *testing.T, g streams.Guarantee) {
		f := newFixture(t)
		start := func() (*running, *wire) {
			cfg := f.config("wc-0")
			cfg.Guarantee = g
			cfg.OnThreadError = func(*streams.Error) streams.ThreadDecision { return streams.ReplaceThread }
			w := watched(&cfg)
			b, _ := f.wordCount()
			return f.start(b, cfg), w
		}
		older, olderWire := start()
		before := f.settled(8, older)
		joined := olderWire.sent[kmsg.JoinGroup.Int16()].Load()
		newer, newerWire := start()
		if e := as(t, older.wait(), streams.KindFenced); !strings.Contains(e.Error(), "wc-0-StreamThread-") {
			t.Errorf("the error names no instance: %v", e)
		}
		if n := olderWire.sent[kmsg.JoinGroup.Int16()].Load(); n != joined {
			t.Errorf("the older process joined %d times more", n-joined)
		}
		if after := f.settled(8, newer); after != before {
			t.Errorf("generation %d, want %d as before", after, before)
		}
		if n := newerWire.sent[kmsg.JoinGroup.Int16()].Load(); n != 2 {
			t.Errorf("the newer process sent %d JoinGroup requests, want one a thread", n)
		}
		f.produce(poem...)
		f.countsUntil(poemCounts)
		newer.end()
	})
}
