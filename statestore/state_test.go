package statestore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/memstore"
)

func TestSpecsAreValidated(t *testing.T) {
	for _, bad := range []statestore.Spec{
		{},
		{Name: strings.Repeat("x", 250)},
		{Name: "kind", Kind: 7},
		{Name: "size", Kind: statestore.Window, Retention: 1},
		{Name: "retention", Kind: statestore.Window, WindowSize: 10, Retention: 9},
	} {
		if _, err := statestore.OpenState(memstore.New(), []statestore.Spec{bad}, statestore.StateOptions{}); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
	twice := []statestore.Spec{{Name: "a"}, {Name: "a"}}
	if _, err := statestore.OpenState(memstore.New(), twice, statestore.StateOptions{}); err == nil {
		t.Error("two stores of one name: no error")
	}
}

func TestWrongStoreIsAClearError(t *testing.T) {
	s := openState(t, memstore.New(), statestore.Spec{Name: "counts"})
	for what, err := range map[string]error{
		`store "counts" is a key-value store, not a window store`: second(s.Window("counts")),
		`store "other" does not belong to this task`:              second(s.KeyValue("other")),
		`offset for store "other"`:                                s.Commit([]statestore.Offset{{Store: "other"}}),
		`restore: store "other"`:                                  s.Restore("other", nil, 1),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want an error with %q", err, what)
		}
	}
	view, err := s.Reader()
	must(t, err)
	_, _, _, err = view.GetWindow("counts", nil, 0)
	if err == nil || !strings.Contains(err.Error(), "is a key-value store") {
		t.Errorf("window query of a key-value store: %v", err)
	}
	must(t, view.Close())
}

func second[T any](_ T, err error) error { return err }

// failing is an engine whose Apply fails as told.
type failing struct {
	*memstore.Store
	err error
}

func (f *failing) Apply(b *statestore.Batch) error {
	if f.err != nil {
		return f.err
	}
	return f.Store.Apply(b)
}

func TestStalledCommitMayBeTriedAgain(t *testing.T) {
	e := &failing{Store: memstore.New()}
	s := openState(t, e, statestore.Spec{Name: "st", Logged: true})
	kv, err := s.KeyValue("st")
	must(t, err)
	must(t, kv.Put([]byte("a"), []byte("1"), 1))
	e.err = &statestore.StoreError{Op: "apply", Stalled: true, Err: errors.New("disk full")}
	for range 2 {
		if err := s.Commit([]statestore.Offset{{Store: "st", Next: 1}}); !errors.Is(err, e.err) {
			t.Fatalf("commit: %v, want %v", err, e.err)
		}
	}
	if _, ok := s.Offset("st"); ok || !s.Dirty() {
		t.Error("the stalled commit moved the offset, or lost the writes")
	}
	must(t, kv.Put([]byte("a"), []byte("2"), 1))
	e.err = nil
	must(t, s.Commit([]statestore.Offset{{Store: "st", Next: 2}}))
	s = openState(t, e, statestore.Spec{Name: "st", Logged: true})
	kv, err = s.KeyValue("st")
	must(t, err)
	value, _, _, err := kv.Get([]byte("a"))
	must(t, err)
	if next, _ := s.Offset("st"); string(value) != "2" || next != 2 {
		t.Errorf("after all: value %q at offset %d, want 2 at 2", value, next)
	}
}

func TestFailedCommitEndsTheState(t *testing.T) {
	e := &failing{Store: memstore.New()}
	s := openState(t, e, statestore.Spec{Name: "st", Logged: true})
	kv, err := s.KeyValue("st")
	must(t, err)
	must(t, kv.Put([]byte("a"), []byte("1"), 1))
	e.err = errors.New("no answer")
	if err := s.Commit(nil); !errors.Is(err, e.err) {
		t.Fatalf("commit: %v", err)
	}
	cause := e.err
	e.err = nil
	for what, err := range map[string]error{
		"put": kv.Put([]byte("b"), []byte("1"), 1), "commit": s.Commit(nil), "restore": s.Restore("st", nil, 1),
	} {
		if !errors.Is(err, cause) {
			t.Errorf("%s after a failed commit: %v, want its error", what, err)
		}
	}
}

func TestCacheStaysInItsBudget(t *testing.T) {
	const budget = 64 << 10
	s, err := statestore.OpenState(memstore.New(), []statestore.Spec{{Name: "st"}}, statestore.StateOptions{CacheBytes: budget})
	must(t, err)
	kv, err := s.KeyValue("st")
	must(t, err)
	for round := range 5 {
		for i := range 5_000 {
			must(t, kv.Put(fmt.Appendf(nil, "%d/%d", round, i), []byte("12345678"), 1))
		}
		if bytes := s.UncommittedBytes(); bytes < 5_000*16 {
			t.Fatalf("%d bytes are uncommitted", bytes)
		}
		must(t, s.Commit(nil))
		if got := s.Stats().CacheBytes; got > budget {
			t.Fatalf("round %d: %d bytes are cached, the budget is %d", round, got, budget)
		}
	}
	for i := range 20_000 { // reads alone, most of them of absent keys
		_, _, _, err := kv.Get(fmt.Appendf(nil, "absent %d", i))
		must(t, err)
	}
	if got := s.Stats().CacheBytes; got > budget+1024 {
		t.Errorf("after reads %d bytes are cached, the budget is %d", got, budget)
	}
}

// TestValueJustReadMayBeWrittenElsewhere has a cache that keeps nothing: were the entry just read not exempt, the write
// would take its buffer while the value lies in it.
func TestValueJustReadMayBeWrittenElsewhere(t *testing.T) {
	s, err := statestore.OpenState(memstore.New(), []statestore.Spec{{Name: "st"}}, statestore.StateOptions{CacheBytes: 1})
	must(t, err)
	kv, err := s.KeyValue("st")
	must(t, err)
	must(t, kv.Put([]byte("from"), []byte("the value, of which the write takes a part"), 1))
	must(t, s.Commit(nil))
	s.Abort() // forgets which entry was the last
	_, _, _, err = kv.Get([]byte("something else"))
	must(t, err)
	value, ts, _, err := kv.Get([]byte("from"))
	must(t, err)
	to := []byte("a key that is longer")
	must(t, kv.Put(to, value[:9], ts))
	if got, _, _, err := kv.Get(to); err != nil || string(got) != "the value" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestHotKeysStayCached reads few keys often between many keys read once.
func TestHotKeysStayCached(t *testing.T) {
	s, err := statestore.OpenState(memstore.New(), []statestore.Spec{{Name: "st"}}, statestore.StateOptions{CacheBytes: 64 << 10})
	must(t, err)
	kv, err := s.KeyValue("st")
	must(t, err)
	get := func(format string, i int) {
		_, _, _, err := kv.Get(fmt.Appendf(nil, format, i))
		must(t, err)
	}
	for i := range 100 {
		get("hot %d", i)
	}
	before := s.Stats()
	const reads = 20_000
	for i := range reads {
		get("cold %d", i)
		get("hot %d", i%100)
	}
	misses := s.Stats().CacheMisses - before.CacheMisses - reads
	if misses > reads/100 {
		t.Errorf("%d of %d reads of 100 hot keys missed the cache", misses, reads)
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	s := openState(t, memstore.New(), statestore.Spec{Name: "kv", Logged: true},
		statestore.Spec{Name: "w", Kind: statestore.Window, Logged: true, WindowSize: 10, Retention: 100})
	kv, err := s.KeyValue("kv")
	must(t, err)
	w, err := s.Window("w")
	must(t, err)
	key, value := []byte("key\x00with zero"), []byte("12345678")
	allocs := testing.AllocsPerRun(1000, func() {
		_, _, _, _ = kv.Get(key)
		_ = kv.Put(key, value, 1)
		_, _, _, _ = w.Get(key, 20)
		_ = w.Put(key, 20, value, 1)
	})
	if allocs != 0 {
		t.Errorf("%v allocations for a read and a write, want 0", allocs)
	}
}
