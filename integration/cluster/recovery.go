package cluster

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Recovery tells what [Start] found in a data directory and had to cut. The zero value is a new directory.
type Recovery struct {
	Existing bool // there was data
	Clean    bool // the last stop was orderly; then nothing is cut

	TornBytes    int64        // bytes of records that were being written at the crash; nobody was told that they are stored
	Transactions []CutTxn     // transactions that were open at the crash; they are aborted
	Damaged      []DamagedLog // logs that lost more than their torn tail, which a crash of the process alone cannot cause
}

// A CutTxn is a transaction that was open when the cluster was killed, in one partition.
type CutTxn struct {
	Topic         string
	Partition     int32
	ProducerID    int64
	ProducerEpoch int16
}

// A DamagedLog is a partition with a hole: acknowledged records behind it are lost.
type DamagedLog struct {
	Topic     string
	Partition int32
	Offset    int64 // the first offset lost
	Bytes     int64
}

// recoverLogs puts the logs right before kfake opens them after a crash. What kfake would do by itself is not enough:
//
//   - It pairs each batch with an entry of an index file by position. Between the two writes of a batch a crash leaves
//     a batch without entry, and from then on every entry is the one of its predecessor, the transactional bit in it
//     included. Such a batch was never acknowledged; it is cut.
//   - It keeps the transactions that were open at the crash as aborted in memory only. A later crash would let the next
//     commit of the same producer commit them too. They get their abort marker in the log (see [broker.abort]).
//   - It reads the sequence numbers and sessions of the last orderly stop, however old, and refuses producers that have
//     gone on since. They are removed.
func recoverLogs(d *dataDir) (Recovery, error) {
	rec := Recovery{Existing: true}
	for _, name := range []string{kfakeSequences, kfakeSessions} {
		if err := removeIfThere(d.file(name)); err != nil {
			return rec, fmt.Errorf("cluster: %w", err)
		}
	}
	dirs, err := os.ReadDir(d.file(kfakeParts))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return rec, fmt.Errorf("cluster: %w", err)
	}
	for _, dir := range dirs {
		topic, partition, ok := partitionOf(dir.Name())
		if !ok {
			continue
		}
		log := logRecovery{dir: filepath.Join(d.file(kfakeParts), dir.Name()), topic: topic, partition: partition, open: map[int64]int16{}}
		if err := log.recover(&rec); err != nil {
			return rec, fmt.Errorf("cluster: recover %s-%d: %w", topic, partition, err)
		}
	}
	return rec, nil
}

// partitionOf reads a partition's directory name, <escaped topic>-<partition>.
func partitionOf(name string) (topic string, partition int32, ok bool) {
	at := strings.LastIndexByte(name, '-')
	if at < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(name[at+1:], 10, 32)
	if err != nil {
		return "", 0, false
	}
	topic, err = url.PathUnescape(name[:at])
	return topic, int32(n), err == nil
}

// A logRecovery walks one partition's segments.
type logRecovery struct {
	dir       string
	topic     string
	partition int32
	open      map[int64]int16 // producer id -> epoch of its undecided batches
}

func (l *logRecovery) recover(rec *Recovery) error {
	bases, err := segmentBases(l.dir)
	if err != nil {
		return err
	}
	for i, base := range bases {
		cut, next, err := l.segment(base)
		if err != nil {
			return err
		}
		switch {
		case cut == 0:
		case i == len(bases)-1:
			rec.TornBytes += cut
		default:
			rec.Damaged = append(rec.Damaged, DamagedLog{l.topic, l.partition, next, cut})
		}
	}
	for id, epoch := range l.open {
		rec.Transactions = append(rec.Transactions, CutTxn{l.topic, l.partition, id, epoch})
	}
	if len(l.open) > 0 {
		// A snapshot of an earlier stop that still fits would hold the last stable offset back for ever.
		return removeIfThere(filepath.Join(l.dir, kfakeSnapshot))
	}
	return nil
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

// segment reads one segment, cuts what is not whole, and returns how many bytes that was and the offset it begins at.
func (l *logRecovery) segment(base int64) (cut, next int64, err error) {
	name := filepath.Join(l.dir, strconv.FormatInt(base, 10))
	f, err := os.OpenFile(name+".dat", os.O_RDWR, 0)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	indexed := int64(0)
	if idx, err := os.Stat(name + ".idx"); err == nil {
		indexed = idx.Size() / indexEntrySize
	}
	good, next := l.walk(bufio.NewReaderSize(f, 256<<10), base, indexed)
	if cut = info.Size() - good; cut == 0 {
		return 0, next, nil
	}
	if err := f.Truncate(good); err != nil {
		return 0, next, err
	}
	return cut, next, nil
}

// walk reads up to limit whole batches and returns how many bytes they take and the offset behind them.
func (l *logRecovery) walk(r io.Reader, base, limit int64) (good, next int64) {
	next = base
	var batch []byte
	for n := int64(0); n < limit; n++ {
		var ok bool
		if batch, ok = readBatch(r, batch); !ok {
			break
		}
		good += int64(len(batch))
		next = int64(binary.BigEndian.Uint64(batch)) + int64(binary.BigEndian.Uint32(batch[batchDeltaAt:])) + 1
		l.note(batch)
	}
	return good, next
}

// note follows which transactions are open.
func (l *logRecovery) note(batch []byte) {
	attributes := binary.BigEndian.Uint16(batch[batchAttributesAt:])
	id := int64(binary.BigEndian.Uint64(batch[batchProducerAt:]))
	switch {
	case attributes&attributeControl != 0:
		delete(l.open, id)
	case attributes&attributeTransactional != 0:
		l.open[id] = int16(binary.BigEndian.Uint16(batch[batchEpochAt:]))
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
