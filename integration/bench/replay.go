package main

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// newReplay is the replay of a workload's sink. What the checks hold: every input record has exactly one
// output record, in the partition where its key belongs; of one key the outputs are in order. Where the sink has the
// input's key, whole partitions are in order, timestamps included.
func newReplay(o options, workload string) (replay, error) {
	if o.t0 == 0 && workload != "wordcount" {
		return nil, fmt.Errorf("%w: verify needs the --t0-ms that load printed", errUsage)
	}
	byPartition := newOrdered(o)
	switch workload {
	case "pass", "raw":
		return &passReplay{byPartition, nil}, nil
	case "count", "rawcount":
		return &countReplay{byPartition, map[string]uint64{}}, nil
	case "windowed":
		return newWindowReplay(o), nil
	case "wordcount":
		return newWordReplay(o), nil
	default:
		return nil, fmt.Errorf("%w: verify has no replay of %q", errUsage, workload)
	}
}

// ordered walks through the input partition by partition, in the order in which it was written.
type ordered struct {
	in   *input
	part func(key []byte) int32
	next []uint64 // by partition: the first input number not looked at
	key  []byte
}

func newOrdered(o options) *ordered {
	return &ordered{in: newInput(o), part: partitionOf(o.partitions), next: make([]uint64, o.partitions)}
}

// partitionOf is Kafka's default partitioner for n partitions.
func partitionOf(n int) func(key []byte) int32 {
	hashed, r := kgo.StickyKeyPartitioner(nil).ForTopic(""), &kgo.Record{}
	return func(key []byte) int32 {
		r.Key = key
		return int32(hashed.Partition(r, n))
	}
}

// advance returns the number and key of the next input record of a partition.
func (s *ordered) advance(partition int32) (n uint64, key []byte, ok bool) {
	for n := s.next[partition]; n < s.in.o.records; n++ {
		s.key = s.in.appendKey(s.key[:0], n)
		if s.part(s.key) == partition {
			s.next[partition] = n + 1
			return n, s.key, true
		}
	}
	s.next[partition] = s.in.o.records
	return 0, nil, false
}

// record is advance for a record that must exist, with its timestamp checked.
func (s *ordered) record(r *kgo.Record) (n uint64, key []byte, err error) {
	n, key, ok := s.advance(r.Partition)
	if !ok {
		return 0, nil, fmt.Errorf("one record too many: key %q", r.Key)
	}
	if ts := s.in.timestamp(n); r.Timestamp.UnixMilli() != ts {
		return 0, nil, fmt.Errorf("key %q: timestamp %d, want %d (input record %d)", r.Key, r.Timestamp.UnixMilli(), ts, n)
	}
	return n, key, nil
}

func (s *ordered) finished() error {
	for p := range s.next {
		if n, key, ok := s.advance(int32(p)); ok {
			return fmt.Errorf("partition %d lacks what follows from input record %d, key %q", p, n, key)
		}
	}
	return nil
}

type passReplay struct {
	*ordered
	value []byte
}

func (p *passReplay) want(r *kgo.Record) error {
	n, key, err := p.record(r)
	if err != nil {
		return err
	}
	_, p.value = p.in.appendRecord(nil, p.value[:0], n)
	touch(p.value)
	if !bytes.Equal(r.Key, key) || !bytes.Equal(r.Value, p.value) {
		return fmt.Errorf("key %q, value %.20x…; want key %q, value %.20x… (input record %d)", r.Key, r.Value, key, p.value, n)
	}
	return nil
}

// countReplay counts per key.
type countReplay struct {
	*ordered
	counts map[string]uint64
}

func (c *countReplay) want(r *kgo.Record) error {
	_, key, err := c.record(r)
	if err != nil {
		return err
	}
	c.counts[string(key)]++
	return sameCount(r, key, c.counts[string(key)])
}

// appendWindowKey makes the sink's key of a window out of a record's key.
func appendWindowKey(key []byte, start int64) []byte {
	return binary.BigEndian.AppendUint64(append(key, '@'), uint64(start))
}

func sameCount(r *kgo.Record, key []byte, count uint64) error {
	want := binary.BigEndian.AppendUint64(nil, count)
	if !bytes.Equal(r.Key, key) || !bytes.Equal(r.Value, want) {
		return fmt.Errorf("key %q, count %x; want key %q, count %x", r.Key, r.Value, key, want)
	}
	return nil
}

// keyReplay is for sinks whose key is not the input's: records of several tasks meet in a partition there, in an
// order that is free. Per key the counts must be 1, 2, 3 … up to the replay's, each in the key's partition; for
// windows also with the times of the records counted.
type keyReplay struct {
	part   func(key []byte) int32
	counts map[string]uint64
	totals map[string]uint64
	times  map[string][]int64 // windowed only
}

func newKeyReplay(o options) *keyReplay {
	return &keyReplay{part: partitionOf(o.partitions), counts: map[string]uint64{}, totals: map[string]uint64{}}
}

func newWordReplay(o options) *keyReplay {
	w := newKeyReplay(o)
	o.kind = "lines"
	in := newInput(o)
	var line []byte
	for n := range o.records {
		_, line = in.appendRecord(nil, line[:0], n)
		for word := range bytes.SplitSeq(line, []byte(" ")) {
			w.totals[string(word)]++
		}
	}
	return w
}

func newWindowReplay(o options) *keyReplay {
	w, in := newKeyReplay(o), newInput(o)
	w.times = map[string][]int64{}
	var key []byte
	for n := range o.records {
		ts := in.timestamp(n)
		key = appendWindowKey(in.appendKey(key[:0], n), ts-ts%o.window.Milliseconds())
		w.totals[string(key)]++
		w.times[string(key)] = append(w.times[string(key)], ts)
	}
	return w
}

func (w *keyReplay) want(r *kgo.Record) error {
	n := w.counts[string(r.Key)]
	w.counts[string(r.Key)]++
	if p := w.part(r.Key); p != r.Partition {
		return fmt.Errorf("key %q belongs into partition %d", r.Key, p)
	}
	if w.times != nil {
		times := w.times[string(r.Key)]
		if n >= uint64(len(times)) {
			return fmt.Errorf("key %q is counted more than %d times", r.Key, len(times))
		}
		if ts := r.Timestamp.UnixMilli(); ts != times[n] {
			return fmt.Errorf("key %q, count %d: timestamp %d, want %d", r.Key, n+1, ts, times[n])
		}
	}
	return sameCount(r, r.Key, n+1)
}

func (w *keyReplay) finished() error {
	for key, want := range w.totals {
		if got := w.counts[key]; got != want {
			return fmt.Errorf("key %q was counted %d times, want %d", key, got, want)
		}
	}
	if len(w.counts) != len(w.totals) {
		return fmt.Errorf("%d keys were counted, the input has %d", len(w.counts), len(w.totals))
	}
	return nil
}
