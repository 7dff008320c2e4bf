package thread

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// What brokers that are away, or coming back, let happen is tried again, and told once; anything else is an error.
func TestOutlast(t *testing.T) {
	passing := []error{
		&net.OpError{Op: "dial", Err: errors.New("connection refused")}, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded,
		kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator, kerr.RequestTimedOut, kerr.LeaderNotAvailable,
	}
	var logs strings.Builder
	tried := 0
	err := outlast(t.Context(), slog.New(slog.NewTextHandler(&logs, nil)), "a test", func() error {
		if tried++; tried > 2 {
			return nil
		}
		return fmt.Errorf("asking: %w", passing[0])
	})
	if err != nil || tried != 3 || strings.Count(logs.String(), "\n") != 1 {
		t.Errorf("%v after %d attempts, logged %q", err, tried, logs.String())
	}
	for _, cause := range passing {
		if !unanswered(cause) && !unavailable(fmt.Errorf("asking: %w", cause)) {
			t.Errorf("%v is no reason to try again", cause)
		}
	}
	for _, cause := range []error{kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.TopicAuthorizationFailed, errors.New("another")} {
		tried := 0
		err := outlast(t.Context(), slog.New(slog.DiscardHandler), "a test", func() error { tried++; return cause })
		if tried != 1 || !errors.Is(err, cause) {
			t.Errorf("%v: tried %d times, then %v", cause, tried, err)
		}
	}
	ended, end := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	err = outlast(ended, slog.New(slog.DiscardHandler), "a test", func() error { end(stop); return passing[0] })
	if !errors.Is(err, stop) {
		t.Errorf("stopped meanwhile: %v", err)
	}
}

// Aborts in a row are a reason to give up only when they go on for long.
func TestAbortsInARow(t *testing.T) {
	var x transaction
	now := time.Unix(1000, 0)
	abort := func(after time.Duration) (time.Duration, bool) {
		now = now.Add(after)
		return x.abort(now)
	}
	if wait, hopeless := abort(time.Hour); wait != 0 || hopeless {
		t.Errorf("the first abort: wait %v, hopeless %t", wait, hopeless)
	}
	for i := range 30 { // a cluster that dies twice a second
		if wait, hopeless := abort(time.Second / 2); hopeless || wait <= 0 || wait > maxAbortPause {
			t.Fatalf("abort %d within %v: wait %v, hopeless %t", i+2, now.Sub(x.aborted), wait, hopeless)
		}
	}
	if _, hopeless := abort(abortPatience); !hopeless {
		t.Error("aborts for longer than the patience are not hopeless")
	}
	x = transaction{}
	for range maxAborts {
		if _, hopeless := abort(2 * abortPatience); hopeless {
			t.Error("a few slow ones are hopeless")
		}
	}
}
