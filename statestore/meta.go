package statestore

import (
	"encoding/binary"
	"fmt"
)

// Meta rows lie under store id 0. Behind it comes a letter, then what the row is about:
//
//	f                    format version (4)
//	q                    number of commits (8)
//	a                    application id
//	c                    cluster id
//	s ‖ store name       store id (2) ‖ kind (1) ‖ segment interval (8)
//	o ‖ store id (2)     changelog offset (8) ‖ wall clock of the batch in ms (8)
//	t ‖ store id (2)     observed time of a window store (8)
//	i ‖ store id (2)     id of the changelog topic
const (
	metaFormat      = 'f'
	metaSeq         = 'q'
	metaApplication = 'a'
	metaCluster     = 'c'
	metaStore       = 's'
	metaOffset      = 'o'
	metaObserved    = 't'
	metaChangelog   = 'i'
)

// formatVersion is the version of the local layout. A change that this code cannot read gets a new number.
const formatVersion = 1

func metaKey(letter byte, rest ...byte) []byte { return append([]byte{0, 0, letter}, rest...) }

func metaStoreKey(letter byte, id uint16) []byte {
	return binary.BigEndian.AppendUint16(metaKey(letter), id)
}

// meta is what the meta rows of an engine say.
type meta struct {
	dir         string
	empty       bool // the engine is new
	format      uint32
	seq         uint64
	application string
	cluster     string
	stores      map[string]storeRow
	offsets     map[uint16]offsetRow
	observed    map[uint16]int64
	changelogs  map[uint16]string
	lastID      uint16
}

type storeRow struct {
	id       uint16
	kind     Kind
	interval int64
}

type offsetRow struct{ next, applied int64 }

func readMeta(r Reader, dir string) (*meta, error) {
	m := &meta{
		dir: dir, empty: true, stores: map[string]storeRow{}, offsets: map[uint16]offsetRow{},
		observed: map[uint16]int64{}, changelogs: map[uint16]string{},
	}
	var bad error
	err := r.Scan(metaKey(0), []byte{0, 1}, func(key, value []byte) bool {
		m.empty = false
		if !m.read(key[2], key[3:], value) {
			bad = &StoreError{
				Op: "open", Dir: dir, Corrupt: true, Err: fmt.Errorf("meta row %q has an unexpected form", key[2:]),
				Hint: "the local copy is damaged: remove it, it is restored from the changelogs",
			}
		}
		return bad == nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the meta rows: %w", err)
	}
	return m, bad
}

// read takes in one row; false means that it has not the form it must have. Letters of later versions are ignored.
func (m *meta) read(letter byte, about, value []byte) bool {
	be := binary.BigEndian
	switch letter {
	case metaFormat:
		if len(value) != 4 {
			return false
		}
		m.format = be.Uint32(value)
	case metaSeq:
		if len(value) != 8 {
			return false
		}
		m.seq = be.Uint64(value)
	case metaApplication:
		m.application = string(value)
	case metaCluster:
		m.cluster = string(value)
	case metaStore:
		if len(value) != 11 {
			return false
		}
		row := storeRow{id: be.Uint16(value), kind: Kind(value[2]), interval: int64(be.Uint64(value[3:]))}
		m.stores[string(about)] = row
		m.lastID = max(m.lastID, row.id)
	default:
		return m.readStoreRow(letter, about, value)
	}
	return true
}

func (m *meta) readStoreRow(letter byte, about, value []byte) bool {
	if len(about) != 2 {
		return letter != metaOffset && letter != metaObserved && letter != metaChangelog
	}
	be, id := binary.BigEndian, binary.BigEndian.Uint16(about)
	switch letter {
	case metaOffset:
		if len(value) != 16 {
			return false
		}
		m.offsets[id] = offsetRow{next: int64(be.Uint64(value)), applied: int64(be.Uint64(value[8:]))}
	case metaObserved:
		if len(value) != 8 {
			return false
		}
		m.observed[id] = int64(be.Uint64(value))
	case metaChangelog:
		m.changelogs[id] = string(value)
	}
	return true
}

// observedTime returns a window store's observed time, -1 when it has none.
func (m *meta) observedTime(id uint16) int64 {
	if t, ok := m.observed[id]; ok {
		return t
	}
	return -1
}

// store returns the row of a store, adding one for a new store. The segment interval stays as it was when the store was
// created, whatever the retention is now: rows are found by it.
func (m *meta) store(b *Batch, spec Spec) (storeRow, error) {
	if row, ok := m.stores[spec.Name]; ok {
		return row, nil
	}
	if m.lastID >= maxStores {
		return storeRow{}, fmt.Errorf("store %q: the task has had %d stores, no more are possible", spec.Name, maxStores)
	}
	m.lastID++
	row := storeRow{id: m.lastID, kind: spec.Kind}
	if spec.Kind == Window {
		row.interval = segmentInterval(spec.Retention)
	}
	m.stores[spec.Name] = row
	value := append(binary.BigEndian.AppendUint16(nil, row.id), byte(row.kind))
	b.Set(metaKey(metaStore, []byte(spec.Name)...), binary.BigEndian.AppendUint64(value, uint64(row.interval)))
	return row, nil
}

func stageSeq(b *Batch, seq uint64) {
	b.Set(metaKey(metaSeq), binary.BigEndian.AppendUint64(nil, seq))
}

func stageOffset(b *Batch, id uint16, next, appliedMilli int64) {
	value := binary.BigEndian.AppendUint64(nil, uint64(next))
	b.Set(metaStoreKey(metaOffset, id), binary.BigEndian.AppendUint64(value, uint64(appliedMilli)))
}

func stageObserved(b *Batch, id uint16, observed int64) {
	b.Set(metaStoreKey(metaObserved, id), binary.BigEndian.AppendUint64(nil, uint64(observed)))
}
