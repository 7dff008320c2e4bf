package statestore_test

import (
	"encoding/binary"
	"strconv"
	"testing"

	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/memstore"
)

// BenchmarkCount is the path of a count: read a counter of 8 bytes, write it again, over so many hot keys.
func BenchmarkCount(b *testing.B) {
	for _, hot := range []int{1, 1000, 100_000} {
		b.Run(strconv.Itoa(hot), func(b *testing.B) {
			s, err := statestore.OpenState(memstore.New(), []statestore.Spec{{Name: "counts", Logged: true}},
				statestore.StateOptions{CacheBytes: 64 << 20})
			if err != nil {
				b.Fatal(err)
			}
			kv, _ := s.KeyValue("counts")
			count := counter(b, kv)
			keys := hotKeys(hot)
			for _, key := range keys {
				count(key)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				count(keys[i])
				if i++; i == len(keys) {
					i = 0
				}
			}
		})
	}
}

// BenchmarkWindowedCount is the same for a window store.
func BenchmarkWindowedCount(b *testing.B) {
	s, err := statestore.OpenState(memstore.New(), []statestore.Spec{
		{Name: "counts", Kind: statestore.Window, Logged: true, WindowSize: 60_000, Retention: 120_000},
	}, statestore.StateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	w, _ := s.Window("counts")
	keys := hotKeys(1000)
	var value [8]byte
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		key := keys[i]
		if i++; i == len(keys) {
			i = 0
		}
		old, _, ok, err := w.Get(key, 60_000)
		if err != nil {
			b.Fatal(err)
		}
		n := uint64(1)
		if ok {
			n += binary.BigEndian.Uint64(old)
		}
		binary.BigEndian.PutUint64(value[:], n)
		if err := w.Put(key, 60_000, value[:], 61_000); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCommit is a commit of 1000 dirty keys, and what it costs for each.
func BenchmarkCommit(b *testing.B) {
	s, err := statestore.OpenState(discard{memstore.New()}, []statestore.Spec{{Name: "counts", Logged: true}}, statestore.StateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	kv, _ := s.KeyValue("counts")
	count := counter(b, kv)
	keys := hotKeys(1000)
	emit := func(string, []byte, []byte, int64) error { return nil }
	offsets := []statestore.Offset{{Store: "counts"}}
	b.ReportAllocs()
	for b.Loop() {
		for _, key := range keys {
			count(key)
		}
		if err := s.Changelog(emit); err != nil {
			b.Fatal(err)
		}
		offsets[0].Next += int64(len(keys))
		if err := s.Commit(offsets); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
}

// discard is an engine that drops what is applied, to measure what lies above.
type discard struct{ *memstore.Store }

func (discard) Apply(*statestore.Batch) error { return nil }

func hotKeys(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = []byte("key-" + strconv.Itoa(i))
	}
	return keys
}

// counter returns a function that adds one to the counter of a key.
func counter(tb testing.TB, kv statestore.KeyValueStore) func(key []byte) {
	value := make([]byte, 8)
	return func(key []byte) {
		old, _, ok, err := kv.Get(key)
		if err != nil {
			tb.Fatal(err)
		}
		n := uint64(1)
		if ok {
			n += binary.BigEndian.Uint64(old)
		}
		binary.BigEndian.PutUint64(value, n)
		if err := kv.Put(key, value, int64(n)); err != nil {
			tb.Fatal(err)
		}
	}
}
