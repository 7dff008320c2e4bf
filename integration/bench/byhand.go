package main

import (
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// copying produces every record again, its value touched. Records and values of one fetched partition are
// two allocations.
type copying struct{ to string }

func (c copying) partition(produce func(*kgo.Record), records []*kgo.Record) {
	size := 0
	for _, r := range records {
		size += len(r.Value)
	}
	slab, values := make([]kgo.Record, len(records)), make([]byte, 0, size)
	for i, r := range records {
		at := len(values)
		values = append(values, r.Value...)
		touch(values[at:])
		slab[i] = kgo.Record{Topic: c.to, Partition: -1, Key: r.Key, Value: values[at:len(values):len(values)], Timestamp: r.Timestamp}
		produce(&slab[i])
	}
}

func (copying) commit(func(*kgo.Record)) {}

// touch flips the first byte of a value that belongs to the caller.
func touch(value []byte) {
	if len(value) > 0 {
		value[0] ^= 1
	}
}

// counting counts per key in a Go map, produces every new count, and once a commit the last count of each
// key that changed to the changelog: what a framework's Count has to do, without a framework.
type counting struct {
	to, changelog string
	counts        map[string]*keyCount
	changed       []*keyCount
}

type keyCount struct {
	key   []byte
	n     uint64
	at    time.Time // of the last record
	dirty bool
}

func newCounting(o options) *counting {
	return &counting{to: o.out, changelog: rawChangelog(o), counts: map[string]*keyCount{}}
}

func rawChangelog(o options) string { return o.appID + "-rawcount-changelog" }

func (c *counting) partition(produce func(*kgo.Record), records []*kgo.Record) {
	slab, values := make([]kgo.Record, len(records)), make([]byte, 0, 8*len(records))
	for i, r := range records {
		k := c.counts[string(r.Key)]
		if k == nil {
			k = &keyCount{key: append([]byte(nil), r.Key...)}
			c.counts[string(k.key)] = k
		}
		k.n++
		k.at = r.Timestamp
		if !k.dirty {
			k.dirty = true
			c.changed = append(c.changed, k)
		}
		values = binary.BigEndian.AppendUint64(values, k.n)
		slab[i] = kgo.Record{Topic: c.to, Partition: -1, Key: k.key, Value: values[8*i : 8*i+8 : 8*i+8], Timestamp: r.Timestamp}
		produce(&slab[i])
	}
}

func (c *counting) commit(produce func(*kgo.Record)) {
	slab, values := make([]kgo.Record, len(c.changed)), make([]byte, 0, 8*len(c.changed))
	for i, k := range c.changed {
		values = binary.BigEndian.AppendUint64(values, k.n)
		slab[i] = kgo.Record{Topic: c.changelog, Partition: -1, Key: k.key, Value: values[8*i : 8*i+8 : 8*i+8], Timestamp: k.at}
		produce(&slab[i])
		k.dirty = false
	}
	c.changed = c.changed[:0]
}
