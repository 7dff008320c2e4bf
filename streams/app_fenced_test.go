package streams_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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

// Promise P6: FENCED_INSTANCE_ID in answer to any request ends the application with an error that says which instance of which group
// was fenced, and what to do. The thread does not join again, and is not replaced.
func TestFencedByAnyAnswer(t *testing.T) {
	for _, key := range []kmsg.Key{kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.LeaveGroup, kmsg.OffsetCommit, kmsg.TxnOffsetCommit} {
		t.Run(key.Name(), func(t *testing.T) {
			f := newFixture(t)
			cfg := f.config("wc-0")
			cfg.Threads, cfg.CloseMode = 1, streams.Leave
			if key == kmsg.TxnOffsetCommit {
				cfg.Guarantee = streams.ExactlyOnce
			}
			cfg.OnThreadError = func(*streams.Error) streams.ThreadDecision { return streams.ReplaceThread }
			w := watched(&cfg)
			cfg.KafkaOptions = append(cfg.KafkaOptions, (&forger{key, fence}).option())
			f.produce(poem...)
			b, _ := f.wordCount()
			app := f.start(b, cfg)
			if key == kmsg.LeaveGroup { // only a member that stops sends it
				f.settled(8, app)
				f.countsUntil(poemCounts)
				app.stop()
			}
			e := as(t, app.wait(), streams.KindFenced)
			fenced, ok := errors.AsType[*membership.FencedError](e)
			if !ok || fenced.InstanceID != "wc-0-StreamThread-1-consumer" || fenced.Group != f.app || string(fenced.Request) != key.Name() {
				t.Errorf("the error is %#v", fenced)
			}
			for _, part := range []string{"wc-0-StreamThread-1-consumer", fmt.Sprintf("group %q", f.app), "FENCED_INSTANCE_ID to " + key.Name(), "a client id of its own"} {
				if !strings.Contains(e.Error(), part) {
					t.Errorf("the error does not say %q: %v", part, e)
				}
			}
			if n := w.sent[kmsg.JoinGroup.Int16()].Load(); n != 1 {
				t.Errorf("%d JoinGroup requests were sent, want 1", n)
			}
		})
	}
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
