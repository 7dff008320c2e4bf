package thread

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/internal/taskid"
)

// A fetch that fails is logged once, what passes is waited for, and a topic that stays away ends the thread.
func TestFailingFetches(t *testing.T) {
	var log strings.Builder
	where := partition{"in", 2}
	r := &route{owner: &owned{id: taskid.ID{Subtopology: "in", Partition: 2}}, next: 7}
	th := &Thread{name: "t", log: slog.New(slog.NewTextHandler(&log, nil)), now: time.Unix(1000, 0), routes: map[partition]*route{where: r}}
	fail := func(after time.Duration, err error) error {
		th.now = th.now.Add(after)
		return th.acceptPartition("in", &kgo.FetchPartition{Partition: 2, Err: err})
	}
	for range 50 {
		if err := fail(time.Second, kerr.NotLeaderForPartition); err != nil {
			t.Fatalf("an error that passes ended the thread: %v", err)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines were logged, want 1", n)
	}
	for _, after := range []time.Duration{0, missingLimit - time.Millisecond} {
		if err := fail(after, kerr.UnknownTopicID); err != nil {
			t.Fatalf("ended the thread before the limit: %v", err)
		}
	}
	err := fail(time.Millisecond, kerr.UnknownTopicID)
	if e, ok := errors.AsType[*FetchError](err); !ok || !e.Missing || e.Topic != "in" || e.Partition != 2 || e.Offset != 7 || e.Task.Partition != 2 {
		t.Fatalf("got %v, want a *FetchError of a missing topic with its coordinates", err)
	}
	err = fail(0, kerr.TopicAuthorizationFailed)
	if e, ok := errors.AsType[*FetchError](err); !ok || e.Missing || !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Fatalf("an error that does not pass: %v", err)
	}
}
