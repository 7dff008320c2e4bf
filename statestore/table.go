package statestore

import "fmt"

// table is what both kinds of store share: the way from a key to its entry.
type table struct {
	state *State
	spec  Spec
	id    uint16 // prefix of its rows in the engine

	dirty []uint32 // entries written since the last commit, in the order of the first write
	order order
	rows  int // size of the last row written or read, a hint for new entries

	offset       Offset
	hasOffset    bool
	appliedMilli int64
}

// lookup returns the entry of key. On the first touch it is read from the engine if that may have it. Of a Get followed
// by a Put of the same key the second finds the entry without a hash.
func (t *table) lookup(key []byte, stored bool) (uint32, *entry, error) {
	o := t.state.overlay
	if o.last != noEntry {
		if e := o.at(o.last); e.holds(t.id, key) {
			return o.last, e, nil
		}
	}
	hash := o.hash(t.id, key)
	if i := o.find(t.id, hash, key); i != noEntry {
		o.last = i
		t.state.stats.CacheHits++
		return i, o.at(i), nil
	}
	if stored {
		return t.load(hash, key)
	}
	t.state.stats.CacheHits++
	o.last = o.insert(t.id, hash, key, t.rows)
	return o.last, o.at(o.last), nil
}

func (t *table) load(hash uint32, key []byte) (uint32, *entry, error) {
	o := t.state.overlay
	t.state.stats.CacheMisses++
	i := o.insert(t.id, hash, key, t.rows)
	e := o.at(i)
	row, ok, err := t.state.engine.Get(e.buf, e.engine())
	if ok && err == nil {
		_, _, err = splitRow(t.state.dir, row[e.klen:])
	}
	if err != nil {
		o.remove(i)
		return noEntry, nil, fmt.Errorf("store %q: get: %w", t.spec.Name, err)
	}
	if ok {
		o.fill(e, row)
		t.rows = min(len(e.row()), keptEntryBuf)
	}
	o.last = i
	return i, e, nil
}

// put writes value, or a deletion when it is nil, into the overlay.
func (t *table) put(key, value []byte, ts int64) error {
	o := t.state.overlay
	i := o.last
	if i == noEntry || !o.at(i).holds(t.id, key) {
		hash := o.hash(t.id, key)
		if i = o.find(t.id, hash, key); i == noEntry {
			i = o.insert(t.id, hash, key, timestampLen+len(value))
		}
		o.last = i
	}
	t.rows = min(timestampLen+len(value), keptEntryBuf)
	e := o.at(i)
	if !e.is(flagDirty) {
		if err := t.state.usable(); err != nil {
			return err
		}
		o.markDirty(e)
		t.dirty = append(t.dirty, i)
	}
	o.set(e, value, ts)
	return nil
}

// scan calls fn for the store's entries with lo <= engine key < hi, the dirty ones merged with those of the engine.
func (t *table) scan(lo, hi []byte, fn func(engineKey, row []byte) bool) error {
	t.order.catchUp(t.state.overlay, t.dirty)
	c := t.order.within(t.state.overlay, lo, hi)
	more := true
	err := t.state.engine.Scan(lo, hi, func(key, row []byte) bool {
		for e := c.peek(); e != nil; e = c.peek() {
			at := string(e.engine())
			if at > string(key) {
				break
			}
			c.next()
			if more = e.is(flagAbsent) || fn(e.engine(), e.row()); !more || at == string(key) {
				return more
			}
		}
		more = fn(key, row)
		return more
	})
	if err != nil {
		return fmt.Errorf("store %q: scan: %w", t.spec.Name, err)
	}
	for e := c.peek(); more && e != nil; e = c.peek() {
		c.next()
		more = e.is(flagAbsent) || fn(e.engine(), e.row())
	}
	return nil
}
