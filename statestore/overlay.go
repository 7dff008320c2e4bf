package statestore

import (
	"encoding/binary"
	"hash/maphash"
)

// overlay holds, for all stores of one State, the writes since the last commit (dirty entries) and, within a byte
// budget, what was read or written before (clean entries). It is record cache, transaction buffer and read cache in one:
// a commit turns dirty entries clean where they are.
//
// It is the hottest structure of the project, hence a hash table of its own instead of a Go map: a slot carries 32 bits
// of hash, so a probe touches an entry only when it is the right one; an entry keeps the engine's key, the timestamp and
// the value in one buffer, so that commit and read need no copy and the collector sees one pointer an entry; buffers of
// evicted entries are used again, so a store in its steady state does not allocate even when every key is a miss.
//
//	O1  An entry in the table equals what the engine has, unless it is dirty.
//	O2  A dirty entry is never evicted, and its index is in its store's dirty list exactly once.
//	O3  Entries never move; an index names the same entry until it is removed.
type overlay struct {
	seed  maphash.Seed
	slots []uint64          // hash (32) ‖ index+1 (32), 0 is empty; open addressing, linear probing, length a power of two
	pages []*[pageLen]entry // entry i is pages[i/pageLen][i%pageLen]
	next  uint32            // entries ever taken from pages
	free  []uint32          // removed entries, to be used again
	hand  uint32            // clock hand: the next entry to be looked at for eviction
	last  uint32            // entry of the last read or write; never evicted, so a value just read may be written elsewhere

	forgot func(e *entry) // is told of each entry before it is removed; nil when nobody asks

	live       int
	cleanLimit int64 // budget for clean entries
	cleanBytes int64
	dirtyBytes int64
}

// entry is one key of one store.
type entry struct {
	buf   []byte // engine key ‖ timestamp (8) ‖ value; the engine key alone when the engine has no row
	klen  uint32 // length of the engine key
	hash  uint32
	store uint16 // id of the store
	flags uint8
}

const (
	flagLive   = 1 << iota // in the table
	flagDirty              // written since the last commit
	flagAbsent             // known not to exist (clean), or deleted (dirty)
	flagUsed               // touched since the clock hand passed
)

const (
	pageLen       = 256
	minSlots      = 64
	entryOverhead = 56 // entry, slot and list bytes beside the buffer, for the accounting
	keptEntryBuf  = 512
	noEntry       = ^uint32(0)
)

func (e *entry) key() []byte        { return e.buf[storePrefixLen:e.klen] }
func (e *entry) engine() []byte     { return e.buf[:e.klen] }
func (e *entry) row() []byte        { return e.buf[e.klen:] }
func (e *entry) value() []byte      { return e.buf[e.klen+timestampLen:] }
func (e *entry) timestamp() int64   { return int64(binary.BigEndian.Uint64(e.buf[e.klen:])) }
func (e *entry) is(flag uint8) bool { return e.flags&flag != 0 }
func (e *entry) cost() int64        { return int64(cap(e.buf)) + entryOverhead }

// holds says whether e is the live entry of key in the store.
func (e *entry) holds(store uint16, key []byte) bool {
	return e.store == store && e.is(flagLive) && string(e.key()) == string(key)
}

func newOverlay(cleanLimit int64) *overlay {
	return &overlay{seed: maphash.MakeSeed(), slots: make([]uint64, minSlots), last: noEntry, cleanLimit: cleanLimit}
}

func (o *overlay) at(i uint32) *entry { return &o.pages[i/pageLen][i%pageLen] }

func (o *overlay) hash(store uint16, key []byte) uint32 {
	h := maphash.Bytes(o.seed, key)
	return uint32(h) ^ uint32(h>>32) ^ uint32(store)*0x9e3779b1
}

// find returns the index of key, or noEntry.
func (o *overlay) find(store uint16, hash uint32, key []byte) uint32 {
	mask := uint32(len(o.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		slot := o.slots[at]
		if slot == 0 {
			return noEntry
		}
		if uint32(slot>>32) != hash {
			continue
		}
		i := uint32(slot) - 1
		if e := o.at(i); e.store == store && string(e.key()) == string(key) {
			e.flags |= flagUsed
			return i
		}
	}
}

// insert adds a clean, absent entry for a key that is not there, and returns its index. size is the expected length of
// timestamp and value, a hint for the buffer.
func (o *overlay) insert(store uint16, hash uint32, key []byte, size int) uint32 {
	o.evict(insertEvictions)
	if (o.live+1)*4 > len(o.slots)*3 {
		o.grow()
	}
	i := o.take()
	e := o.at(i)
	klen := storePrefixLen + len(key)
	e.buf = fitted(e.buf, klen+size)
	e.buf = append(appendStorePrefix(e.buf[:0], store), key...)
	e.klen, e.hash, e.store, e.flags = uint32(klen), hash, store, flagLive|flagAbsent
	o.place(hash, i)
	o.live++
	o.cleanBytes += e.cost()
	return i
}

// fitted returns a buffer with room for need bytes: the old one where it is neither too small nor a waste.
func fitted(old []byte, need int) []byte {
	if cap(old) >= need && cap(old) <= 4*need+64 {
		return old
	}
	return make([]byte, 0, need)
}

// take returns an unused entry.
func (o *overlay) take() uint32 {
	if n := len(o.free); n > 0 {
		i := o.free[n-1]
		o.free = o.free[:n-1]
		return i
	}
	if o.next%pageLen == 0 {
		o.pages = append(o.pages, new([pageLen]entry))
	}
	o.next++
	return o.next - 1
}

func (o *overlay) place(hash, i uint32) {
	mask := uint32(len(o.slots) - 1)
	at := hash & mask
	for o.slots[at] != 0 {
		at = (at + 1) & mask
	}
	o.slots[at] = uint64(hash)<<32 | uint64(i+1)
}

func (o *overlay) grow() {
	old := o.slots
	o.slots = make([]uint64, 2*len(old))
	for _, slot := range old {
		if slot != 0 {
			o.place(uint32(slot>>32), uint32(slot)-1)
		}
	}
}

// set writes value into the entry, or its absence when it is nil. The timestamp is kept either way: a deletion has one
// in the changelog too.
func (o *overlay) set(e *entry, value []byte, ts int64) {
	need := int(e.klen) + timestampLen + len(value)
	if cap(e.buf) < need {
		before := e.cost()
		// A value that grows once tends to grow again: leave a quarter spare.
		e.buf = append(make([]byte, 0, need+need/4), e.engine()...)
		o.charge(e, e.cost()-before)
	}
	e.buf = e.buf[:need]
	binary.BigEndian.PutUint64(e.buf[e.klen:], uint64(ts))
	copy(e.value(), value)
	e.flags &^= flagAbsent
	if value == nil {
		e.flags |= flagAbsent
	}
}

// charge accounts a change of an entry's cost to the right side.
func (o *overlay) charge(e *entry, delta int64) {
	if e.is(flagDirty) {
		o.dirtyBytes += delta
	} else {
		o.cleanBytes += delta
	}
}

// fill gives a clean entry what the engine's row holds.
func (o *overlay) fill(e *entry, buf []byte) {
	before := e.cost()
	e.buf = buf
	e.flags &^= flagAbsent
	o.charge(e, e.cost()-before)
}

func (o *overlay) markDirty(e *entry) {
	o.cleanBytes -= e.cost()
	o.dirtyBytes += e.cost()
	e.flags |= flagDirty
}

func (o *overlay) markClean(e *entry) {
	o.dirtyBytes -= e.cost()
	o.cleanBytes += e.cost()
	e.flags &^= flagDirty
}

// remove takes an entry out of the table.
func (o *overlay) remove(i uint32) {
	e := o.at(i)
	if o.forgot != nil {
		o.forgot(e)
	}
	o.charge(e, -e.cost())
	o.unlink(e.hash, i)
	e.flags = 0
	if cap(e.buf) > keptEntryBuf {
		e.buf = nil
	}
	o.live--
	o.free = append(o.free, i)
}

// unlink empties the entry's slot and closes the gap: entries behind it that could lie nearer to their home move up.
func (o *overlay) unlink(hash, i uint32) {
	mask := uint32(len(o.slots) - 1)
	gap := hash & mask
	for uint32(o.slots[gap])-1 != i {
		gap = (gap + 1) & mask
	}
	for at := (gap + 1) & mask; o.slots[at] != 0; at = (at + 1) & mask {
		home := uint32(o.slots[at]>>32) & mask
		if (at-home)&mask >= (at-gap)&mask {
			o.slots[gap] = o.slots[at]
			gap = at
		}
	}
	o.slots[gap] = 0
}
