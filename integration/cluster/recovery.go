package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
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
// producer had asked for the commit and waited for the answer: then the commit is completed. If it had ended in another
// partition, it ends in the same way here. In any case the producer is fenced, since its view of the transaction may be another.
type CutTxn struct {
	Topic         string
	Partition     int32
	ProducerID    int64
	ProducerEpoch int16
	Committed     bool
	Half          bool // it had ended in another partition already, in the same way
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
//     gone on since. The sessions are removed, the sequence numbers are those that the logs end with.
func recoverLogs(d *dataDir, p points) (Recovery, error) {
	rec := Recovery{Existing: true}
	if err := removeIfThere(d.file(kfakeSessions)); err != nil {
		return rec, fmt.Errorf("cluster: %w", err)
	}
	how, err := readDecisions(d)
	if err != nil {
		return rec, err
	}
	logs, err := partitionLogs(d)
	if err != nil {
		return rec, err
	}
	for _, l := range logs {
		if err := l.recover(&rec, how); err != nil {
			return rec, fmt.Errorf("cluster: recover %s-%d: %w", l.topic, l.partition, err)
		}
	}
	if err := writeSequences(d, logs); err != nil {
		return rec, err
	}
	for _, l := range logs {
		l.decide(how)
		rec.Transactions = append(rec.Transactions, l.cut...)
	}
	p.reach(atRecoveryFences)
	// Who has to be fenced is written down before the markers: with them, the next start sees no open transaction.
	if err := noteFences(d, rec.Transactions); err != nil {
		return rec, err
	}
	for _, l := range logs {
		if err := l.end(p); err != nil {
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
				dir: filepath.Join(d.file(kfakeParts), dir.Name()), topic: topic, partition: partition,
				open: map[int64]int16{}, windows: map[int64]*window{},
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
