package classic

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace-io/millrace/membership"
)

func TestCommitAndFetchBack(t *testing.T) {
	w := newWorld(t)
	p := w.join(w.config("wc-0", true))
	p.assigned()
	if err := p.Commit(t.Context(), nil); err != nil {
		t.Errorf("commit of nothing: %v", err)
	}
	offsets := []Offset{
		{Topic: w.topic, Partition: 0, At: 42, LeaderEpoch: -1, Metadata: "seq 7"},
		{Topic: w.topic, Partition: 2, At: 9, LeaderEpoch: 0},
	}
	if err := p.Commit(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	got, err := p.Committed(t.Context(), []TopicPartition{{w.topic, 0}, {w.topic, 1}, {w.topic, 2}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[TopicPartition]Offset{{w.topic, 0}: offsets[0], {w.topic, 2}: offsets[1]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got, err := p.Committed(t.Context(), nil); err != nil || len(got) > 0 {
		t.Errorf("offsets of nothing: %v, %v", got, err)
	}
}

func TestCommitOfAnUnknownTopic(t *testing.T) {
	w := newWorld(t)
	p := w.join(w.config("wc-0", true))
	p.assigned()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // else it hopes for the topic to appear
	defer cancel()
	err := p.Commit(ctx, []Offset{{Topic: "nowhere", At: 1, LeaderEpoch: -1}})
	if !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("got %v", err)
	}
}

// transaction begins a transaction on the member's client with one record in it, and returns the producer.
func transaction(t *testing.T, p *peer) (producerID int64, epoch int16) {
	t.Helper()
	if err := p.client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := p.client.ProduceSync(t.Context(), &kgo.Record{Topic: p.w.topic, Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	producerID, epoch, err := p.client.ProducerID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return producerID, epoch
}

// Offsets of a transaction are not there before it is committed, and who asks for them waits for the decision.
func TestTransactionalCommit(t *testing.T) {
	t.Run("transaction version 2", func(t *testing.T) { transactionalCommit(t, true) })
	t.Run("transaction version 1", func(t *testing.T) {
		transactionalCommit(t, false, kgo.MaxVersions(kversion.V3_5_0()))
	})
}

func transactionalCommit(t *testing.T, implicit bool, opts ...kgo.Opt) {
	w := newWorld(t)
	p := w.join(w.config("wc-0", true), append(opts, kgo.TransactionalID("app-wc-0"))...)
	p.assigned()
	if p.facts.implicitOffsets != implicit {
		t.Fatalf("offsets join the transaction by themselves: %v, want %v", p.facts.implicitOffsets, implicit)
	}
	tp := TopicPartition{w.topic, 1}
	for n, outcome := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		before, err := p.Committed(t.Context(), []TopicPartition{tp})
		if err != nil {
			t.Fatal(err)
		}
		id, epoch := transaction(t, p)
		offset := Offset{Topic: w.topic, Partition: 1, At: int64(10 + n), LeaderEpoch: -1, Metadata: "seq"}
		if err := p.CommitTxn(t.Context(), "app-wc-0", id, epoch, []Offset{offset}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if got, err := p.Committed(ctx, []TopicPartition{tp}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the transaction is open: %v, %v", got, err)
		}
		cancel()
		if err := p.client.EndTransaction(t.Context(), outcome); err != nil {
			t.Fatal(err)
		}
		want := before
		if outcome == kgo.TryCommit {
			want = map[TopicPartition]Offset{tp: offset}
		}
		got, err := p.Committed(t.Context(), []TopicPartition{tp})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("transaction %d: -want +got\n%s", n, diff)
		}
	}
}

// A member that was replaced cannot commit any more, in neither way, even before its heartbeat tells it so; and its
// machine hears of it from the commit.
func TestFencedCommits(t *testing.T) {
	for _, way := range []membership.Request{membership.OffsetCommit, membership.TxnOffsetCommit} {
		t.Run(string(way), func(t *testing.T) {
			w := newWorld(t)
			older := w.join(w.config("wc-0", true), kgo.TransactionalID("app"))
			older.assigned()
			token, _ := older.Token()
			id, epoch := transaction(t, older)
			// The commits of the older one, without a loop that heartbeats could tell.
			d := &Driver{cfg: older.cfg, client: older.client, facts: older.facts, inputs: make(chan membership.Input, 1)}
			d.view.Store(&view{token: token, ok: true, settled: true})
			w.join(w.config("wc-0", true)).assigned()

			offsets := []Offset{{Topic: w.topic, At: 1, LeaderEpoch: -1}}
			var err error
			if way == membership.OffsetCommit {
				err = d.Commit(t.Context(), offsets)
			} else {
				err = d.CommitTxn(t.Context(), "app", id, epoch, offsets)
			}
			want := membership.FencedError{InstanceID: token.InstanceID, Group: w.group, MemberID: token.MemberID, Request: way}
			if e, ok := errors.AsType[*membership.FencedError](err); !ok || *e != want {
				t.Fatalf("got %v, want %v", err, &want)
			}
			if in, ok := (<-d.inputs).(membership.CommitRefused); !ok || in.Code != membership.FencedInstanceID || in.Token != token {
				t.Errorf("the machine was told %+v", in)
			}
		})
	}
}

// TestRefusedCommits lists what each answer to a commit means, for a token that is current, one of the generation before, one
// under which a rebalance runs, and one of an identity that the member no longer has.
func TestRefusedCommits(t *testing.T) {
	token := membership.CommitToken{Group: "g", MemberID: "m", InstanceID: "i", Generation: 5}
	newer, other := token, token
	newer.Generation, other.MemberID = 6, "m2"
	current := view{token: token, ok: true, settled: true}
	rebalancing := view{token: token, ok: true}
	moved := view{token: newer, ok: true, settled: true}
	replaced := view{token: other, ok: true, settled: true}
	gone := view{}
	fenced := view{fatal: &membership.FencedError{InstanceID: "i"}}
	for _, c := range []struct {
		name string
		now  view
		code *kerr.Error
		want error
		told bool // the machine hears of it
	}{
		{"rebalance", current, kerr.RebalanceInProgress, membership.ErrRebalance, false},
		{"generation, current", current, kerr.IllegalGeneration, membership.ErrLost, true},
		{"generation, while joining", rebalancing, kerr.IllegalGeneration, membership.ErrRebalance, false},
		{"generation, already newer", moved, kerr.IllegalGeneration, membership.ErrRebalance, false},
		{"generation, other identity", replaced, kerr.IllegalGeneration, membership.ErrLost, true},
		{"generation, lost meanwhile", gone, kerr.IllegalGeneration, membership.ErrLost, true},
		{"unknown member", current, kerr.UnknownMemberID, membership.ErrLost, true},
		{"fenced by itself", replaced, kerr.FencedInstanceID, membership.ErrLost, false},
		{"fenced, known already", fenced, kerr.UnknownMemberID, fenced.fatal, false},
		{"group gone", current, kerr.GroupIDNotFound, membership.ErrLost, false},
		{"producer fenced", current, kerr.ProducerFenced, kerr.ProducerFenced, false},
		{"coordinator loading", current, kerr.CoordinatorLoadInProgress, kerr.CoordinatorLoadInProgress, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &Driver{cfg: Config{Group: "g"}, inputs: make(chan membership.Input, 1), done: make(chan struct{})}
			d.view.Store(&c.now)
			err := d.refused(token, membership.OffsetCommit, TopicPartition{"in", 3}, c.code.Code)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if told := len(d.inputs) == 1; told != c.told {
				t.Errorf("the machine was told: %v, want %v", told, c.told)
			}
		})
	}
}
