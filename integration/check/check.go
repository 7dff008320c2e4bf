// Package check compares what a run left behind with what a replay says. It is what the crash tests, the demo
// and the integration tests rely on for "nothing lost, nothing twice, nothing out of order", so its own tests
// plant each of these faults and see it reported.
//
// Records are read at read_committed up to the end, and nothing may be left open there. Output topics are
// compared record by record in the order of their partition ([InOrder]); topics in which several writers meet,
// whose order is free, as multisets ([AsMultiset]); state as a whole ([Tables]).
package check

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Record is what is compared of a record. A nil Key or Value is null, which differs from empty.
type Record struct {
	Key, Value []byte
	Timestamp  int64 // milliseconds
}

func (r Record) equal(o Record) bool {
	return r.Timestamp == o.Timestamp && bytes.Equal(r.Key, o.Key) && bytes.Equal(r.Value, o.Value) &&
		(r.Key == nil) == (o.Key == nil) && (r.Value == nil) == (o.Value == nil)
}

// String shows a record as text when it is short text, else in hex.
func (r Record) String() string {
	return fmt.Sprintf("(%s = %s @ %d)", show(r.Key), show(r.Value), r.Timestamp)
}

func show(b []byte) string {
	if b == nil {
		return "null"
	}
	if len(b) > 40 {
		return fmt.Sprintf("%q…", b[:40])
	}
	for _, c := range b {
		if c < ' ' || c > '~' {
			return fmt.Sprintf("%x", b)
		}
	}
	return fmt.Sprintf("%q", b)
}

// Topic is the content of a topic: by partition, in order of offsets.
type Topic [][]Record

// Len is the number of records in all partitions.
func (t Topic) Len() int {
	n := 0
	for _, p := range t {
		n += len(p)
	}
	return n
}

// A Difference says where and how content differs from the replay.
type Difference struct {
	Topic     string
	Partition int
	At        int    // index within the partition; -1 for a multiset
	Kind      string // lost, duplicate, swapped, changed or extra
	Detail    string
}

func (d *Difference) Error() string {
	where := fmt.Sprintf("%s/%d", d.Topic, d.Partition)
	if d.At >= 0 {
		where += fmt.Sprintf(" record %d", d.At)
	}
	return fmt.Sprintf("%s: %s: %s", where, d.Kind, d.Detail)
}

// InOrder compares partition by partition, record by record, in order. The error is a *Difference that tells
// the first one.
func InOrder(name string, got, want Topic) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s has %d partitions, want %d", name, len(got), len(want))
	}
	for p := range want {
		if d := firstDifference(got[p], want[p]); d != nil {
			d.Topic, d.Partition = name, p
			return d
		}
	}
	return nil
}

func firstDifference(got, want []Record) *Difference {
	at := 0
	for at < len(got) && at < len(want) && got[at].equal(want[at]) {
		at++
	}
	if at == len(got) && at == len(want) {
		return nil
	}
	d := &Difference{At: at}
	is := func(list []Record, i int, r Record) bool { return i >= 0 && i < len(list) && list[i].equal(r) }
	switch {
	case at == len(got):
		d.Kind, d.Detail = "lost", fmt.Sprintf("%s and %d more are missing at the end", want[at], len(want)-at-1)
	case is(got, at-1, got[at]):
		d.Kind, d.Detail = "duplicate", fmt.Sprintf("%s is there twice", got[at])
	case at == len(want):
		d.Kind, d.Detail = "extra", fmt.Sprintf("%s and %d more are past the end", got[at], len(got)-at-1)
	case is(want, at+1, got[at]) && is(got, at+1, want[at]):
		d.Kind, d.Detail = "swapped", fmt.Sprintf("%s is before %s", got[at], want[at])
	case is(want, at+1, got[at]):
		d.Kind, d.Detail = "lost", fmt.Sprintf("%s is missing before %s", want[at], got[at])
	case is(got, at+1, want[at]):
		d.Kind, d.Detail = "extra", fmt.Sprintf("%s is there before %s", got[at], want[at])
	default:
		d.Kind, d.Detail = "changed", fmt.Sprintf("%s, want %s", got[at], want[at])
	}
	return d
}

// AsMultiset compares partition by partition without regard to order: each record as often as wanted. The
// error is a *Difference.
func AsMultiset(name string, got, want Topic) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s has %d partitions, want %d", name, len(got), len(want))
	}
	for p := range want {
		if d := firstMultisetDifference(got[p], want[p]); d != nil {
			d.Topic, d.Partition, d.At = name, p, -1
			return d
		}
	}
	return nil
}

func firstMultisetDifference(got, want []Record) *Difference {
	surplus, first := map[string]int{}, map[string]Record{}
	for _, r := range got {
		surplus[identity(r)]++
		first[identity(r)] = r
	}
	for _, r := range want {
		surplus[identity(r)]--
		first[identity(r)] = r
	}
	ids := make([]string, 0, len(surplus))
	for id, n := range surplus {
		if n != 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	id := slices.Min(ids) // the same one each time
	if n := surplus[id]; n > 0 {
		return &Difference{Kind: "duplicate", Detail: fmt.Sprintf("%s is there %d times too often; %d records differ", first[id], n, len(ids))}
	}
	return &Difference{Kind: "lost", Detail: fmt.Sprintf("%s is there %d times too seldom; %d records differ", first[id], -surplus[id], len(ids))}
}

func identity(r Record) string {
	return fmt.Sprintf("%t%q%t%q%d", r.Key == nil, r.Key, r.Value == nil, r.Value, r.Timestamp)
}

// Tables compares state: the same keys with the same values.
func Tables(name string, got, want map[string]uint64) error {
	var wrong []string
	for key, w := range want {
		if g, ok := got[key]; !ok {
			wrong = append(wrong, fmt.Sprintf("%q is missing, want %d", key, w))
		} else if g != w {
			wrong = append(wrong, fmt.Sprintf("%q is %d, want %d", key, g, w))
		}
	}
	for key, g := range got {
		if _, ok := want[key]; !ok {
			wrong = append(wrong, fmt.Sprintf("%q is %d, want no such key", key, g))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("%s differs in %d keys: %s", name, len(wrong), strings.Join(wrong[:min(3, len(wrong))], "; "))
}
