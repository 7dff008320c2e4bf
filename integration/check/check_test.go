package check

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func words(n int) Topic {
	t := make(Topic, 2)
	for i := range n {
		t[i%2] = append(t[i%2], Record{Key: fmt.Appendf(nil, "w%d", i%7), Value: []byte{}, Timestamp: int64(1000 + i*10%70)})
	}
	return t
}

func clone(t Topic) Topic {
	c := make(Topic, len(t))
	for p, records := range t {
		c[p] = append([]Record(nil), records...)
	}
	return c
}

// plants are the faults that a check exists for; the kind is what it must be called.
var plants = []struct {
	name, kind string
	plant      func(p []Record) []Record
}{
	{"a loss", "lost", func(p []Record) []Record { return append(p[:5:5], p[6:]...) }},
	{"a loss at the end", "lost", func(p []Record) []Record { return p[:len(p)-1] }},
	{"a duplicate", "duplicate", func(p []Record) []Record { return append(p[:6:6], p[5:]...) }},
	{"a duplicate at the end", "duplicate", func(p []Record) []Record { return append(p, p[len(p)-1]) }},
	{"a swap", "swapped", func(p []Record) []Record { p[5], p[6] = p[6], p[5]; return p }},
	{"another count", "changed", func(p []Record) []Record {
		p[5].Value = binary.BigEndian.AppendUint64(nil, 99)
		return p
	}},
	{"another time", "changed", func(p []Record) []Record { p[5].Timestamp++; return p }},
	{"null for empty", "changed", func(p []Record) []Record { p[5].Value = nil; return p }},
	{"a stranger", "extra", func(p []Record) []Record { return append(p, Record{Key: []byte("stranger")}) }},
}

func TestInOrderReportsPlantedFaults(t *testing.T) {
	want := RunningCounts(words(60))
	if err := InOrder("sink", clone(want), want); err != nil {
		t.Fatalf("equal content: %v", err)
	}
	for _, f := range plants {
		for p := range want {
			got := clone(want)
			got[p] = f.plant(got[p])
			d, ok := errors.AsType[*Difference](InOrder("sink", got, want))
			if !ok || d.Kind != f.kind || d.Partition != p {
				t.Errorf("%s in partition %d: reported as %v, want %s", f.name, p, d, f.kind)
			}
		}
	}
	if err := InOrder("sink", want[:1], want); err == nil {
		t.Error("a missing partition was not noticed")
	}
}

func TestAsMultisetReportsPlantedFaults(t *testing.T) {
	want := words(60)
	for _, f := range plants {
		got := clone(want)
		got[1] = f.plant(got[1])
		err := AsMultiset("repartition", got, want)
		if f.kind == "swapped" {
			if err != nil {
				t.Errorf("order is free in a multiset: %v", err)
			}
		} else if err == nil {
			t.Errorf("%s was not noticed", f.name)
		}
	}
	got := clone(want)
	got[0], got[1] = got[1], got[0]
	if AsMultiset("repartition", got, want) == nil {
		t.Error("records in the wrong partition were not noticed")
	}
}

func TestTablesReportsEachKindOfDifference(t *testing.T) {
	want := map[string]uint64{"a": 1, "b": 2}
	if err := Tables("state", map[string]uint64{"a": 1, "b": 2}, want); err != nil {
		t.Errorf("equal state: %v", err)
	}
	for _, got := range []map[string]uint64{{"a": 1}, {"a": 1, "b": 3}, {"a": 1, "b": 2, "c": 0}, {}} {
		if Tables("state", got, want) == nil {
			t.Errorf("%v was taken for %v", got, want)
		}
	}
}

func TestCountsOfAReplay(t *testing.T) {
	input := words(60)
	sink := RunningCounts(input)
	if sink.Len() != 60 {
		t.Fatalf("%d outputs for 60 inputs", sink.Len())
	}
	last, err := LastCounts(Topic{sink[0]})
	if err != nil {
		t.Fatal(err)
	}
	if err := Tables("state", last, Totals(Topic{input[0]})); err != nil {
		t.Error(err)
	}
	older := RunningCounts(Topic{{{Key: []byte("k"), Timestamp: 9}, {Key: []byte("k"), Timestamp: 4}}})
	if ts := older[0][1].Timestamp; ts != 9 {
		t.Errorf("the count of a late record is stamped %d, want the latest time 9", ts)
	}
	if _, err := LastCounts(Topic{{{Key: []byte("k"), Value: []byte("x")}}}); err == nil {
		t.Error("a value that is no count was accepted")
	}
	last, err = LastCounts(Topic{{sink[0][0], {Key: sink[0][0].Key}}})
	if err != nil || len(last) != 0 {
		t.Errorf("after a delete: %v, %v", last, err)
	}
}

// A record that is counted twice must not stand for one that is not counted yet.
func TestFollowerWaitsForEveryKey(t *testing.T) {
	f := &Follower{last: map[string]uint64{}, changed: make(chan struct{})}
	count := func(key string, n uint64) {
		f.add(kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "counts", Partitions: []kgo.FetchPartition{{
			Records: []*kgo.Record{{Key: []byte(key), Value: binary.BigEndian.AppendUint64(nil, n)}},
		}}}}}})
	}
	want := map[string]uint64{"a": 1, "b": 1}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	count("a", 2)
	if err := f.Await(t.Context(), 2); err != nil || f.Sum() != 2 {
		t.Errorf("sum %d, %v", f.Sum(), err)
	}
	if err := f.AwaitAll(over, want); err == nil {
		t.Error("b is not counted, and nobody waited for it")
	}
	count("b", 1)
	if err := f.AwaitAll(t.Context(), want); err != nil {
		t.Error(err)
	}
}
