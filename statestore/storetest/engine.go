package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-io/millrace/statestore"
)

// runEngine checks the engine alone.
func runEngine(t *testing.T, newDisk func(t testing.TB) Disk) {
	t.Run("a later operation of a batch wins", func(t *testing.T) {
		e := newDisk(t).Open(t)
		apply(t, e, func(b *statestore.Batch) {
			b.Set([]byte("a"), []byte("1"))
			b.Set([]byte("b"), []byte("1"))
			b.Set([]byte("c"), []byte("1"))
			b.Set([]byte("d"), nil)
			b.DeleteRange([]byte("b"), []byte("d"))
			b.Set([]byte("c"), []byte("2"))
			b.Delete([]byte("a"))
		})
		expectList(t, "content", content(t, e, "", "z"), `"c"="2"`, `"d"=""`)
		must(t, e.Close())
	})
	t.Run("a range deletion covers what earlier batches set", func(t *testing.T) {
		e := newDisk(t).Open(t)
		apply(t, e, func(b *statestore.Batch) {
			for i := range 100 {
				b.Set(fmt.Appendf(nil, "k%02d", i), []byte{1})
			}
		})
		must(t, e.Flush(context.Background()))
		apply(t, e, func(b *statestore.Batch) { b.DeleteRange([]byte("k00"), []byte("k98")) })
		expectList(t, "content", content(t, e, "", "z"), `"k98"="\x01"`, `"k99"="\x01"`)
		must(t, e.Close())
	})
	t.Run("Get appends, also to a buffer that holds the key", func(t *testing.T) {
		e := newDisk(t).Open(t)
		apply(t, e, func(b *statestore.Batch) { b.Set([]byte("key"), []byte("value")) })
		buf := append(make([]byte, 0, 64), "key"...)
		got, ok, err := e.Get(buf, buf)
		if err != nil || !ok || string(got) != "keyvalue" {
			t.Errorf("got %q, %v, %v", got, ok, err)
		}
		got, ok, err = e.Get([]byte("x"), []byte("absent"))
		if err != nil || ok || string(got) != "x" {
			t.Errorf("absent key: got %q, %v, %v", got, ok, err)
		}
		must(t, e.Close())
	})
	t.Run("a scan is half open and stops when told", func(t *testing.T) {
		e := newDisk(t).Open(t)
		apply(t, e, func(b *statestore.Batch) {
			for _, key := range []string{"a", "b", "c", "d"} {
				b.Set([]byte(key), nil)
			}
		})
		expectList(t, "b to d", content(t, e, "b", "d"), `"b"=""`, `"c"=""`)
		n := 0
		must(t, e.Scan([]byte("a"), []byte("z"), func(_, _ []byte) bool { n++; return n < 2 }))
		expect(t, "calls", fmt.Sprint(n), "2")
		must(t, e.Close())
	})
	t.Run("a snapshot does not see later batches", func(t *testing.T) { runSnapshot(t, newDisk(t).Open(t)) })
	t.Run("closed is an error, not a panic", func(t *testing.T) { runClosed(t, newDisk(t).Open(t)) })
}

func runSnapshot(t *testing.T, e statestore.Engine) {
	apply(t, e, func(b *statestore.Batch) { b.Set([]byte("a"), []byte("1")) })
	snap, err := e.Snapshot()
	must(t, err)
	apply(t, e, func(b *statestore.Batch) {
		b.Set([]byte("a"), []byte("2"))
		b.Set([]byte("b"), []byte("2"))
	})
	must(t, e.Flush(context.Background()))
	expectList(t, "snapshot", content(t, snap, "", "z"), `"a"="1"`)
	expectList(t, "engine", content(t, e, "", "z"), `"a"="2"`, `"b"="2"`)
	must(t, snap.Close())
	must(t, e.Close())
}

func runClosed(t *testing.T, e statestore.Engine) {
	apply(t, e, func(b *statestore.Batch) { b.Set([]byte("a"), []byte("1")) })
	snap, err := e.Snapshot()
	must(t, err)
	must(t, e.Close())

	nothing := func(_, _ []byte) bool { return true }
	var b statestore.Batch
	_, _, getErr := e.Get(nil, []byte("a"))
	_, _, snapErr := snap.Get(nil, []byte("a"))
	_, openErr := e.Snapshot()
	for what, err := range map[string]error{
		"Get": getErr, "Scan": e.Scan(nil, []byte("z"), nothing), "Apply": e.Apply(&b), "Snapshot": openErr,
		"Flush": e.Flush(context.Background()), "Close": e.Close(),
		"Get of a snapshot": snapErr, "Scan of a snapshot": snap.Scan(nil, []byte("z"), nothing),
	} {
		if !errors.Is(err, statestore.ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", what, err)
		}
	}
	must(t, snap.Close())
}

func apply(t testing.TB, e statestore.Engine, fill func(b *statestore.Batch)) {
	t.Helper()
	var b statestore.Batch
	fill(&b)
	must(t, e.Apply(&b))
}

func content(t testing.TB, r statestore.Reader, lo, hi string) []string {
	t.Helper()
	var got []string
	must(t, r.Scan([]byte(lo), []byte(hi), func(key, value []byte) bool {
		got = append(got, fmt.Sprintf("%q=%q", key, value))
		return true
	}))
	if !slices.IsSorted(got) {
		t.Errorf("scan is out of order: %v", got)
	}
	return got
}
