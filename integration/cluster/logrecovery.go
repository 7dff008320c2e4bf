package cluster

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A logRecovery walks one partition's segments.
type logRecovery struct {
	dir       string
	topic     string
	partition int32

	open        map[int64]int16   // producer id -> epoch of its undecided batches
	windows     map[int64]*window // producer id -> its last batches
	cut         []CutTxn          // what is open at the end of the log
	base        int64             // of the last segment
	next        int64             // offset behind the last batch
	leaderEpoch int32             // of the last batch
}

// recover cuts what is not whole, finds what is open, and notes the decisions that the log holds.
func (l *logRecovery) recover(rec *Recovery, how *decisions) error {
	bases, err := segmentBases(l.dir)
	if err != nil {
		return err
	}
	for i, base := range bases {
		cut, err := l.segment(base, how)
		if err != nil {
			return err
		}
		switch {
		case cut == 0:
		case i == len(bases)-1:
			rec.TornBytes += cut
		default:
			rec.Damaged = append(rec.Damaged, DamagedLog{l.topic, l.partition, l.next, cut})
		}
	}
	return nil
}

// decide says how what is open ends.
func (l *logRecovery) decide(how *decisions) {
	for _, id := range slices.Sorted(maps.Keys(l.open)) {
		txn := CutTxn{Topic: l.topic, Partition: l.partition, ProducerID: id, ProducerEpoch: l.open[id]}
		txn.Committed, txn.Half = how.of(id, txn.ProducerEpoch)
		l.cut = append(l.cut, txn)
	}
}

// segmentBases lists the first offsets of the segments in a directory, in order.
func segmentBases(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var bases []int64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".dat")
		if !ok {
			continue
		}
		if base, err := strconv.ParseInt(name, 10, 64); err == nil {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	return bases, nil
}

// indexEntrySize is the size of one entry of kfake's index files; every batch has one.
const indexEntrySize = 15

// segment reads one segment, cuts what is not whole, and returns how many bytes that was.
func (l *logRecovery) segment(base int64, how *decisions) (cut int64, err error) {
	l.base, l.next = base, base
	name := l.segmentName()
	f, err := os.OpenFile(name+".dat", os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	indexed := int64(0)
	if idx, err := os.Stat(name + ".idx"); err == nil {
		indexed = idx.Size() / indexEntrySize
	}
	batches, good := l.walk(bufio.NewReaderSize(f, 256<<10), indexed, how)
	if cut = info.Size() - good; cut > 0 {
		if err := f.Truncate(good); err != nil {
			return 0, err
		}
	}
	if err := os.Truncate(name+".idx", batches*indexEntrySize); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	return cut, nil
}

func (l *logRecovery) segmentName() string {
	return filepath.Join(l.dir, strconv.FormatInt(l.base, 10))
}

// walk reads up to limit whole batches and returns how many there are and how many bytes they take.
func (l *logRecovery) walk(r io.Reader, limit int64, how *decisions) (batches, good int64) {
	var batch []byte
	for ; batches < limit; batches++ {
		var ok bool
		if batch, ok = readBatch(r, batch); !ok {
			break
		}
		good += int64(len(batch))
		l.note(batch, how)
	}
	return batches, good
}

// note follows where the log ends, which transactions are open, and what each producer wrote last.
func (l *logRecovery) note(batch []byte, how *decisions) {
	first := int64(binary.BigEndian.Uint64(batch))
	delta := int32(binary.BigEndian.Uint32(batch[batchDeltaAt:]))
	l.next = first + int64(delta) + 1
	l.leaderEpoch = int32(binary.BigEndian.Uint32(batch[batchLeaderEpochAt:]))
	attributes := binary.BigEndian.Uint16(batch[batchAttributesAt:])
	id := int64(binary.BigEndian.Uint64(batch[batchProducerAt:]))
	epoch := int16(binary.BigEndian.Uint16(batch[batchEpochAt:]))
	if attributes&attributeControl != 0 {
		delete(l.open, id)
		how.note(id, epoch, commits(batch))
		return
	}
	if attributes&attributeTransactional != 0 {
		l.open[id] = epoch
	}
	if id >= 0 {
		l.window(id).add(epoch, int32(binary.BigEndian.Uint32(batch[batchSequenceAt:])), delta+1, first)
	}
}

// readBatch reads one record batch into buf and checks it; ok is false at the end of what is whole.
func readBatch(r io.Reader, buf []byte) (batch []byte, ok bool) {
	buf = slices.Grow(buf[:0], batchHeaderSize)[:batchHeaderSize]
	if _, err := io.ReadFull(r, buf); err != nil {
		return buf, false
	}
	length := int(int32(binary.BigEndian.Uint32(buf[batchLengthAt:])))
	if length < batchHeaderSize-batchLengthEnd || length > maxFrame {
		return buf, false
	}
	total := batchLengthEnd + length
	buf = slices.Grow(buf, total-batchHeaderSize)[:total]
	if _, err := io.ReadFull(r, buf[batchHeaderSize:]); err != nil {
		return buf, false
	}
	want := binary.BigEndian.Uint32(buf[batchCRCAt:])
	return buf, crc32.Checksum(buf[batchAttributesAt:], castagnoli) == want
}

// end appends the markers of what was cut, the batch first and then its index entry, as kfake does: a kill in between
// leaves the next recovery the same work.
func (l *logRecovery) end(p points) error {
	if len(l.cut) == 0 {
		return nil
	}
	// A snapshot of an earlier stop that still fits would hold the last stable offset back for ever.
	if err := removeIfThere(filepath.Join(l.dir, kfakeSnapshot)); err != nil {
		return err
	}
	for _, txn := range l.cut {
		p.reach(atRecoveryMarker)
		if err := appendFile(l.segmentName()+".dat", markerBatch(l.next, l.leaderEpoch, txn)); err != nil {
			return err
		}
		p.reach(atRecoveryIndex)
		l.next++
		if err := appendFile(l.segmentName()+".idx", indexEntry(l.leaderEpoch)); err != nil {
			return err
		}
	}
	return nil
}

// indexEntry is kfake's entry of a batch that is not part of an open transaction: format, checksum, epoch, the largest
// timestamp before it (worked out anew when it is read), flags.
func indexEntry(leaderEpoch int32) []byte {
	entry := make([]byte, indexEntrySize)
	entry[0] = 1
	binary.LittleEndian.PutUint32(entry[2:], uint32(leaderEpoch))
	entry[1] = byte(crc32.Checksum(entry[2:], castagnoli))
	return entry
}

func appendFile(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}
