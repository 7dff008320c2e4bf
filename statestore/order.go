package statestore

import (
	"bytes"
	"slices"
)

// order is the sorted view of one store's dirty entries, for ranges. It is built only when a range is asked for and
// then catches up with what was written since: new entries are sorted into a short list, and that into the long one
// when it has grown. A store that is never ranged pays nothing; one that is ranged after every write pays for a short
// merge.
//
// Merges make new slices and leave the old ones alone, because a range that is under way may hold them.
type order struct {
	long, short []uint32 // indices into the overlay, each sorted by engine key
	covered     int      // how many of the store's dirty entries are in them
}

const shortLimit = 512

func (r *order) reset() { *r = order{} }

// catchUp sorts in the dirty entries that are not yet covered.
func (r *order) catchUp(o *overlay, dirty []uint32) {
	if r.covered == len(dirty) {
		return
	}
	byKey := func(a, b uint32) int { return bytes.Compare(o.at(a).engine(), o.at(b).engine()) }
	added := slices.Clone(dirty[r.covered:])
	slices.SortFunc(added, byKey)
	r.covered = len(dirty)
	r.short = mergeSorted(r.short, added, byKey)
	if len(r.short) > shortLimit {
		r.long, r.short = mergeSorted(r.long, r.short, byKey), nil
	}
}

func mergeSorted(a, b []uint32, cmp func(a, b uint32) int) []uint32 {
	if len(a) == 0 {
		return b
	}
	out := make([]uint32, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if cmp(a[0], b[0]) < 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// cursor walks the dirty entries of a range in order.
type cursor struct {
	o           *overlay
	long, short []uint32
}

// within returns a cursor over the entries with lo <= key < hi.
func (r *order) within(o *overlay, lo, hi []byte) cursor {
	cut := func(list []uint32) []uint32 {
		find := func(key []byte) int {
			at, _ := slices.BinarySearchFunc(list, key, func(i uint32, key []byte) int {
				return bytes.Compare(o.at(i).engine(), key)
			})
			return at
		}
		from := find(lo)
		return list[from:max(from, find(hi))]
	}
	return cursor{o: o, long: cut(r.long), short: cut(r.short)}
}

// peek returns the first entry that is left, or nil.
func (c *cursor) peek() *entry {
	switch {
	case len(c.long) == 0 && len(c.short) == 0:
		return nil
	case len(c.long) == 0:
		return c.o.at(c.short[0])
	case len(c.short) == 0:
		return c.o.at(c.long[0])
	}
	a, b := c.o.at(c.long[0]), c.o.at(c.short[0])
	if bytes.Compare(a.engine(), b.engine()) < 0 {
		return a
	}
	return b
}

// next drops the entry that peek returned.
func (c *cursor) next() {
	if len(c.short) == 0 || len(c.long) > 0 &&
		bytes.Compare(c.o.at(c.long[0]).engine(), c.o.at(c.short[0]).engine()) < 0 {
		c.long = c.long[1:]
		return
	}
	c.short = c.short[1:]
}
