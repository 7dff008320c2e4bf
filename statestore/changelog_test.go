package statestore_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/memstore"
)

func openState(t *testing.T, e statestore.Engine, specs ...statestore.Spec) *statestore.State {
	t.Helper()
	s, err := statestore.OpenState(e, specs, statestore.StateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// changelog returns what Changelog emits, one record a line: store, key, value, timestamp.
func changelog(t *testing.T, s *statestore.State) []string {
	t.Helper()
	var got []string
	err := s.Changelog(func(store string, key, value []byte, ts int64) error {
		text := "null"
		if value != nil {
			text = hex.EncodeToString(value)
		}
		got = append(got, fmt.Sprintf("%s %x %s %d", store, key, text, ts))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The expected bytes of the next two tests were taken from the changelog topics of Kafka Streams 4.4.

func TestChangelogOfKeyValueStoreHasKafkasBytes(t *testing.T) {
	s := openState(t, memstore.New(), statestore.Spec{Name: "st", Logged: true})
	kv, err := s.KeyValue("st")
	must(t, err)
	var got []string
	write := func(key string, value []byte, ts int64) {
		must(t, kv.Put([]byte(key), value, ts))
		got = append(got, changelog(t, s)...)
		must(t, s.Commit(nil))
	}
	write("a", []byte("x"), 5)
	write("a", nil, 7)
	write("b", []byte("z"), 6)
	want := []string{"st 61 78 5", "st 61 null 7", "st 62 7a 6"}
	if !slices.Equal(got, want) {
		t.Errorf("changelog %q, want %q", got, want)
	}
}

func TestChangelogOfWindowStoreHasKafkasBytes(t *testing.T) {
	s := openState(t, memstore.New(), statestore.Spec{
		Name: "st", Kind: statestore.Window, Logged: true, WindowSize: 10, Retention: 110,
	})
	w, err := s.Window("st")
	must(t, err)
	must(t, w.Put([]byte("a"), 0, []byte("x"), 5))
	must(t, w.Put([]byte("a"), 10, []byte("y"), 17))
	must(t, w.Put([]byte("\x00a\x00"), 10, []byte("z"), 18))
	got := changelog(t, s)
	want := []string{
		"st 61000000000000000000000000 78 5",
		"st 61000000000000000a00000000 79 17",
		"st 006100000000000000000a00000000 7a 18",
	}
	if !slices.Equal(got, want) {
		t.Errorf("changelog %q, want %q", got, want)
	}
}

func TestChangelogHasTheLastValuePerKeyOnce(t *testing.T) {
	s := openState(t, memstore.New(),
		statestore.Spec{Name: "one", Logged: true}, statestore.Spec{Name: "quiet"}, statestore.Spec{Name: "two", Logged: true})
	put := func(store, key, value string, ts int64) {
		kv, err := s.KeyValue(store)
		must(t, err)
		must(t, kv.Put([]byte(key), []byte(value), ts))
	}
	put("two", "k", "1", 1)
	put("one", "b", "1", 1)
	put("quiet", "k", "1", 1)
	put("one", "a", "1", 2)
	put("one", "b", "", 3)
	got, want := changelog(t, s), []string{"one 62  3", "one 61 31 2", "two 6b 31 1"}
	if !slices.Equal(got, want) {
		t.Errorf("changelog %q, want %q", got, want)
	}
	if again := changelog(t, s); !slices.Equal(again, want) {
		t.Errorf("the second time %q, want %q", again, want)
	}
	must(t, s.Commit(nil))
	if got := changelog(t, s); len(got) > 0 {
		t.Errorf("after the commit %q, want nothing", got)
	}
}
