package classic

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/membership"
)

// heartbeats counts answered heartbeats on a client.
type heartbeats chan struct{}

func (h heartbeats) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	if key == kmsg.Heartbeat.Int16() && e2e.Err() == nil {
		select {
		case h <- struct{}{}:
		default:
		}
	}
}

// beats waits for n more heartbeats.
func (h heartbeats) beats(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-h:
		case <-time.After(patience):
			t.Fatal("no heartbeat")
		}
	}
}

// startBusy starts a member whose thread does not look at its events.
func startBusy(t *testing.T, w *world) (*Driver, heartbeats) {
	t.Helper()
	beat := make(heartbeats)
	cfg := w.config("wc-0", true)
	cfg.Client = w.client(kgo.WithHooks(beat))
	d, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(context.Background(), Remain); err != nil {
			t.Error(err)
		}
	})
	return d, beat
}

// Heartbeats depend on nothing that the thread does: it has not even taken its first event.
func TestBusyThreadKeepsItsPlace(t *testing.T) {
	w := newWorld(t)
	d, beat := startBusy(t, w)
	beat.beats(t, 10)
	if a, ok := (<-d.Events()).(membership.Assigned); !ok || len(a.Active) != partitions {
		t.Errorf("got %v", a)
	}
}

// After its tasks are lost a busy thread must not commit them under the token of the join after: there is none before
// it has heard of the loss.
func TestNoTokenBeforeTheThreadHasHeardOfTheLoss(t *testing.T) {
	w := newWorld(t)
	d, beat := startBusy(t, w)
	beat.beats(t, 1)
	before, ok := d.Token()
	if !ok {
		t.Fatal("no token")
	}
	offsets := []Offset{{Topic: w.topic, At: 1, LeaderEpoch: -1}}
	if err := d.Commit(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	w.remove(before.InstanceID)
	for len(w.instances()) == 0 { // until the driver has joined again
	}
	beat.beats(t, 2)
	if token, ok := d.Token(); ok {
		t.Errorf("token %+v while the loss is unheard of", token)
	}
	if err := d.Commit(t.Context(), offsets); !errors.Is(err, membership.ErrLost) {
		t.Errorf("commit: %v", err)
	}
	for {
		if _, lost := (<-d.Events()).(membership.Lost); lost {
			break
		}
	}
	if a, ok := (<-d.Events()).(membership.Assigned); !ok || len(a.Active) != partitions {
		t.Errorf("after the loss: %v", a)
	}
	if after, ok := d.Token(); !ok || after.MemberID == before.MemberID {
		t.Errorf("token %+v, %v", after, ok)
	}
	if err := d.Commit(t.Context(), offsets); err != nil {
		t.Errorf("commit of the new assignment: %v", err)
	}
}

// A member that was replaced cannot leave in place of its successor.
func TestFencedLeave(t *testing.T) {
	w := newWorld(t)
	cfg := w.config("wc-0", true)
	older := w.join(cfg)
	older.assigned()
	token, _ := older.Token()
	newer := w.join(w.config("wc-0", true))
	newer.assigned()
	err := LeaveGroup(t.Context(), w.client(), w.group, "a test", Place{token.MemberID, cfg.InstanceID})
	want := membership.FencedError{InstanceID: cfg.InstanceID, Group: w.group, MemberID: token.MemberID, Request: membership.LeaveGroup}
	if e, ok := errors.AsType[*membership.FencedError](err); !ok || *e != want {
		t.Errorf("got %v", err)
	}
	newer.beatsOnce()
	if len(w.instances()) != 1 {
		t.Error("the newer one is gone")
	}
}
