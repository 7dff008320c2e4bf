package pebblestore_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/pebblestore"
)

// BenchmarkCount counts over so many keys in turn, with a commit every 20,000 records. With few keys the overlay answers
// all reads; with many, beyond its cache, most reads go to pebble.
func BenchmarkCount(b *testing.B) {
	for _, keys := range []int{1_000, 100_000, 500_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			shared := pebblestore.NewShared(pebblestore.Config{Tasks: 2})
			defer shared.Close()
			engine, err := shared.Open(b.TempDir())
			must(b, err)
			s, err := statestore.OpenState(engine, []statestore.Spec{{Name: "counts", Logged: true}}, statestore.StateOptions{})
			must(b, err)
			kv, err := s.KeyValue("counts")
			must(b, err)
			key, value := make([]byte, 8), make([]byte, 8)
			b.ReportAllocs()
			n := uint64(0)
			for b.Loop() {
				n++
				binary.BigEndian.PutUint64(key, n*7919%uint64(keys)*0x9e3779b97f4a7c15)
				old, _, ok, err := kv.Get(key)
				if err != nil {
					b.Fatal(err)
				}
				count := uint64(1)
				if ok {
					count += binary.BigEndian.Uint64(old)
				}
				binary.BigEndian.PutUint64(value, count)
				if err := kv.Put(key, value, int64(n)); err != nil {
					b.Fatal(err)
				}
				if n%20_000 == 0 {
					must(b, s.Commit([]statestore.Offset{{Store: "counts", Next: int64(n)}}))
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(s.Stats().CacheMisses)/float64(n), "misses/op")
			must(b, s.Close(b.Context()))
		})
	}
}

// BenchmarkRestore restores records of 100 bytes, unsorted and unique, in batches of 4 MiB.
func BenchmarkRestore(b *testing.B) {
	shared := pebblestore.NewShared(pebblestore.Config{Tasks: 2})
	defer shared.Close()
	engine, err := shared.Open(b.TempDir())
	must(b, err)
	s, err := statestore.OpenState(engine, []statestore.Spec{{Name: "table", Logged: true}}, statestore.StateOptions{})
	must(b, err)
	recs := make([]statestore.ChangelogRecord, 40_000)
	value := make([]byte, 92)
	for i := range recs {
		recs[i] = statestore.ChangelogRecord{Key: make([]byte, 8), Value: value}
	}
	n := uint64(0)
	for b.Loop() {
		for i := range recs {
			n++
			binary.BigEndian.PutUint64(recs[i].Key, n*0x9e3779b97f4a7c15)
		}
		must(b, s.Restore("table", recs, int64(n)))
	}
	b.StopTimer()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
	must(b, s.Close(b.Context()))
}
