package cluster

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Places in an encoded record batch (message format 2).
const (
	batchLengthAt      = 8
	batchLengthEnd     = 12 // the length counts what follows here
	batchLeaderEpochAt = 12
	batchMagicAt       = 16
	batchCRCAt         = 17
	batchAttributesAt  = 21 // the checksum covers everything from here
	batchDeltaAt       = 23
	batchProducerAt    = 43
	batchEpochAt       = 51
	batchSequenceAt    = 53
	batchCountAt       = 57
	batchHeaderSize    = 61

	attributeCodec         = 0x7
	attributeAppendTime    = 1 << 3
	attributeTransactional = 1 << 4
	attributeControl       = 1 << 5
)

// A producer is in whose name a batch is written.
type producer struct {
	id            int64
	epoch         int16
	sequence      int32
	transactional bool
}

// nobody writes without idempotence: one client, one request at a time, and a repetition does no harm.
var nobody = producer{id: -1, epoch: -1, sequence: -1}

// recordBatch encodes records as one uncompressed batch. There must be at least one record.
func recordBatch(records []coordinator.Record, by producer) []byte {
	now := time.Now().UnixMilli()
	batch := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1,
		Magic:                2,
		LastOffsetDelta:      int32(len(records) - 1),
		FirstTimestamp:       now,
		MaxTimestamp:         now,
		ProducerID:           by.id,
		ProducerEpoch:        by.epoch,
		FirstSequence:        by.sequence,
		NumRecords:           int32(len(records)),
		Records:              appendRecords(nil, records),
	}
	if by.transactional {
		batch.Attributes = attributeTransactional
	}
	return seal(batch)
}

// markerBatch encodes the control batch that ends a transaction, with the one producer epoch it ends.
func markerBatch(offset int64, leaderEpoch int32, txn CutTxn) []byte {
	key := kmsg.ControlRecordKey{Type: kmsg.ControlRecordKeyTypeAbort}
	if txn.Committed {
		key.Type = kmsg.ControlRecordKeyTypeCommit
	}
	value := kmsg.EndTxnMarker{}
	now := time.Now().UnixMilli()
	return seal(kmsg.RecordBatch{
		FirstOffset:          offset,
		PartitionLeaderEpoch: leaderEpoch,
		Magic:                2,
		Attributes:           attributeTransactional | attributeControl,
		FirstTimestamp:       now,
		MaxTimestamp:         now,
		ProducerID:           txn.ProducerID,
		ProducerEpoch:        txn.ProducerEpoch,
		FirstSequence:        -1,
		NumRecords:           1,
		Records:              appendRecords(nil, []coordinator.Record{{Key: key.AppendTo(nil), Value: value.AppendTo(nil)}}),
	})
}

// seal encodes a batch with its length and checksum.
func seal(batch kmsg.RecordBatch) []byte {
	out := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(out[batchLengthAt:], uint32(len(out)-batchLengthEnd))
	binary.BigEndian.PutUint32(out[batchCRCAt:], crc32.Checksum(out[batchAttributesAt:], castagnoli))
	return out
}

func appendRecords(dst []byte, records []coordinator.Record) []byte {
	var body []byte
	for i, r := range records {
		body = append(body[:0], 0)               // attributes
		body = kbin.AppendVarlong(body, 0)       // timestamp delta
		body = kbin.AppendVarint(body, int32(i)) // offset delta
		body = kbin.AppendVarintBytes(body, r.Key)
		body = kbin.AppendVarintBytes(body, r.Value)
		body = kbin.AppendVarint(body, 0) // headers
		dst = kbin.AppendVarint(dst, int32(len(body)))
		dst = append(dst, body...)
	}
	return dst
}
