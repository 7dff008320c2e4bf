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
	Transactions []CutTxn     // transactions that had not ended at the crash, by partition
	Damaged      []DamagedLog // logs that lost more than their torn tail, which a crash of the process alone cannot cause
}

// A CutTxn is a transaction that had not ended in one partition when the cluster was killed. It is aborted, unless its
// producer had asked for the commit and waited for the answer: then the commit is completed. Either way the producer
// is fenced, since its view of the transaction may be another.
type CutTxn struct {
	Topic         string
	Partition     int32
	ProducerID    int64
	ProducerEpoch int16
	Committed     bool
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
//     commit of the same producer commit them too. They get their marker in the log, and it is the one that was being
//     written when there is an intent (see [intents]).
//   - It reads the sequence numbers and sessions of the last orderly stop, however old, and refuses producers that have
//     gone on since. They are removed.
func recoverLogs(d *dataDir) (Recovery, error) {
	rec := Recovery{Existing: true}
	for _, name := range []string{kfakeSequences, kfakeSessions} {
		if err := removeIfThere(d.file(name)); err != nil {
			return rec, fmt.Errorf("cluster: %w", err)
		}
	}
	committing, err := readIntents(d)
	if err != nil {
		return rec, err
	}
	logs, err := partitionLogs(d)
	if err != nil {
		return rec, err
	}
	for _, l := range logs {
		if err := l.recover(&rec, committing); err != nil {
			return rec, fmt.Errorf("cluster: recover %s-%d: %w", l.topic, l.partition, err)
		}
	}
	// Who has to be fenced is written down before the markers: with them, the next start sees no open transaction.
	if err := noteFences(d, rec.Transactions); err != nil {
		return rec, err
	}
	for _, l := range logs {
		if err := l.end(); err != nil {
			return rec, fmt.Errorf("cluster: end transactions in %s-%d: %w", l.topic, l.partition, err)
		}
	}
	return rec, nil
}

// partitionLogs lists the logs in a data directory.
func partitionLogs(d *dataDir) ([]*logRecovery, error) {
	dirs, err := os.ReadDir(d.file(kfakeParts))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	var logs []*logRecovery
	for _, dir := range dirs {
		if topic, partition, ok := partitionOf(dir.Name()); ok {
			logs = append(logs, &logRecovery{
				dir: filepath.Join(d.file(kfakeParts), dir.Name()), topic: topic, partition: partition, open: map[int64]int16{},
			})
		}
	}
	return logs, nil
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

	open        map[int64]int16 // producer id -> epoch of its undecided batches
	cut         []CutTxn        // the same at the end of the log
	base        int64           // of the last segment
	next        int64           // offset behind the last batch
	leaderEpoch int32           // of the last batch
}

// recover cuts what is not whole and finds what is open.
func (l *logRecovery) recover(rec *Recovery, committing map[intent]bool) error {
	bases, err := segmentBases(l.dir)
	if err != nil {
		return err
	}
	for i, base := range bases {
		cut, err := l.segment(base)
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
	for id, epoch := range l.open {
		l.cut = append(l.cut, CutTxn{l.topic, l.partition, id, epoch, committing[intent{id, epoch, true}]})
	}
	rec.Transactions = append(rec.Transactions, l.cut...)
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

// segment reads one segment, cuts what is not whole, and returns how many bytes that was.
func (l *logRecovery) segment(base int64) (cut int64, err error) {
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
	batches, good := l.walk(bufio.NewReaderSize(f, 256<<10), indexed)
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
func (l *logRecovery) walk(r io.Reader, limit int64) (batches, good int64) {
	var batch []byte
	for ; batches < limit; batches++ {
		var ok bool
		if batch, ok = readBatch(r, batch); !ok {
			break
		}
		good += int64(len(batch))
		l.note(batch)
	}
	return batches, good
}

// note follows where the log ends and which transactions are open.
func (l *logRecovery) note(batch []byte) {
	l.next = int64(binary.BigEndian.Uint64(batch)) + int64(binary.BigEndian.Uint32(batch[batchDeltaAt:])) + 1
	l.leaderEpoch = int32(binary.BigEndian.Uint32(batch[batchLeaderEpochAt:]))
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

// end appends the markers of what was cut, the batch first and then its index entry, as kfake does: a kill in between
// leaves the next recovery the same work.
func (l *logRecovery) end() error {
	if len(l.cut) == 0 {
		return nil
	}
	// A snapshot of an earlier stop that still fits would hold the last stable offset back for ever.
	if err := removeIfThere(filepath.Join(l.dir, kfakeSnapshot)); err != nil {
		return err
	}
	for _, txn := range l.cut {
		if err := appendFile(l.segmentName()+".dat", markerBatch(l.next, l.leaderEpoch, txn)); err != nil {
			return err
		}
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
