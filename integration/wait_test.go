package integration

import (
	"context"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace-io/millrace/streams"
)

// awaitCount waits until a query sees a count: the sink is readable a moment before local state is committed.
func awaitCount(t *testing.T, ctx context.Context, view *streams.View[string, int64], word string, want uint64) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		n, ok, err := view.Get(word)
		if err != nil {
			t.Fatal(err)
		}
		if ok && uint64(n) == want {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("a query sees %d (there: %t) for %q, want %d", n, ok, word, want)
		}
	}
}

// awaitQuietDisk waits until every task of a worker has a table on disk and none has come for longer than flushes
// are apart: then everything that was committed is on disk.
func awaitQuietDisk(t *testing.T, ctx context.Context, w *worker) {
	t.Helper()
	err := w.Await(ctx, "flush of everything", func() (bool, error) {
		var newest time.Time
		err := filepath.WalkDir(w.cfg.Dir, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".sst" {
				return nil // a file may go while it is looked at
			}
			if info, err := entry.Info(); err == nil && info.ModTime().After(newest) {
				newest = info.ModTime()
			}
			return nil
		})
		return !newest.IsZero() && time.Since(newest) > 2*w.cfg.FlushEvery, err
	})
	if err != nil {
		t.Fatal(err)
	}
}
