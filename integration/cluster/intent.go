package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// intents remember, in a file, which transactions are just being ended, and how. kfake writes a transaction's markers
// one partition after the other; a kill in between would leave the transaction committed here and open there. With the
// intent the next start completes what was begun, as a broker does with its PREPARE_COMMIT.
//
// The file is an array of slots, one for each producer whose EndTxn is under way; a slot is written before kfake gets
// the request and cleared before the client gets the answer. A client that loses its connection meanwhile repeats the
// EndTxn, which takes the same slot. A slot whose client never came back is harmless: the next incarnation has another
// epoch, and only an open transaction of exactly that producer and epoch is looked up.
type intents struct {
	mu    sync.Mutex
	file  *os.File
	slots map[int64]int64 // producer id -> slot
	free  []int64
	count int64
}

// An intent is how a transaction is being ended.
type intent struct {
	producerID    int64
	producerEpoch int16
	commit        bool
	ownEpoch      bool // no other transaction has this epoch (EndTxn from version 5 on, KIP-890)
}

const intentSize = 16 // checksum 4, producer id 8, epoch 2, commit 1, own epoch 1

func (i intent) encode() []byte {
	b := make([]byte, intentSize)
	binary.BigEndian.PutUint64(b[4:], uint64(i.producerID))
	binary.BigEndian.PutUint16(b[12:], uint16(i.producerEpoch))
	if i.commit {
		b[14] = 1
	}
	if i.ownEpoch {
		b[15] = 1
	}
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// decodeIntent reads a slot; a cleared or damaged one is no intent.
func decodeIntent(b []byte) (intent, bool) {
	if binary.BigEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli) {
		return intent{}, false
	}
	return intent{
		producerID:    int64(binary.BigEndian.Uint64(b[4:])),
		producerEpoch: int16(binary.BigEndian.Uint16(b[12:])),
		commit:        b[14] == 1,
		ownEpoch:      b[15] == 1,
	}, true
}

// readIntents returns the transactions that were being ended at a crash, by producer id.
func readIntents(d *dataDir) (map[int64]intent, error) {
	raw, err := os.ReadFile(d.file(intentsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	found := map[int64]intent{}
	for ; len(raw) >= intentSize; raw = raw[intentSize:] {
		if i, ok := decodeIntent(raw[:intentSize]); ok {
			found[i.producerID] = i
		}
	}
	return found, nil
}

// openIntents starts with an empty file: what it held has been seen to.
func openIntents(d *dataDir) (*intents, error) {
	f, err := os.OpenFile(d.file(intentsName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return &intents{file: f, slots: map[int64]int64{}}, nil
}

// begin notes that a transaction is about to be ended, and returns what to call when it has been.
func (t *intents) begin(req *kmsg.EndTxnRequest) (done func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot, ok := t.slots[req.ProducerID]
	if !ok {
		slot = t.allot()
		t.slots[req.ProducerID] = slot
	}
	i := intent{req.ProducerID, req.ProducerEpoch, req.Commit, req.Version >= 5}
	if _, err := t.file.WriteAt(i.encode(), slot*intentSize); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return func() { t.end(req.ProducerID) }, nil
}

func (t *intents) allot() int64 {
	if n := len(t.free); n > 0 {
		slot := t.free[n-1]
		t.free = t.free[:n-1]
		return slot
	}
	t.count++
	return t.count - 1
}

func (t *intents) end(producerID int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot, ok := t.slots[producerID]
	if !ok {
		return // two requests of one producer shared the slot
	}
	if _, err := t.file.WriteAt(make([]byte, intentSize), slot*intentSize); err != nil {
		return // stays in use, so that nothing else takes a slot that still says something
	}
	delete(t.slots, producerID)
	t.free = append(t.free, slot)
}

func (t *intents) close() error { return t.file.Close() }
