package cluster

import (
	"context"
	"fmt"

	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// offsetsSegment is the size of the offsets topic's segments, the unit in which trimmed records leave the disk.
	offsetsSegment = "8388608"

	// trimAbove is how long the offsets topic may be, and trimFactor how much longer than what is in force, before a start
	// trims it.
	trimAbove  = 10_000
	trimFactor = 4

	// trimBatch is how many records go into one batch of a rewritten log.
	trimBatch = 500
)

// trim keeps the offsets topic small: it appends what is in force once more and deletes everything before it. A kill
// anywhere leaves a log that amounts to the same: records are only deleted when their copies are there, and if the
// deletion itself is forgotten, the originals are followed by their copies. kfake's compaction is not used; it is not
// crash safe and does not know open transactions.
//
// It does nothing while a transaction holds offsets, whose place in the log is its producer's.
func trim(ctx context.Context, b *broker, topicID [16]byte, node int32, records []coordinator.LogRecord, start, end int64) (next int64, err error) {
	if end-start < trimAbove || end-start < trimFactor*int64(len(records)) || holdsOpen(records) {
		return end, nil
	}
	for from := 0; from < len(records); from += trimBatch {
		var batch []coordinator.Record
		for _, r := range records[from:min(from+trimBatch, len(records))] {
			batch = append(batch, r.Record)
		}
		if err := b.appendOffsets(ctx, topicID, node, nil, recordBatch(batch, nobody)); err != nil {
			return 0, fmt.Errorf("cluster: rewrite %s: %w", offsetsTopic, err)
		}
	}
	next, err = b.endOffset(ctx)
	if err != nil {
		return 0, err
	}
	// At least one record stays, so that the log remembers its offsets.
	if err := b.deleteBefore(ctx, min(end, next-1)); err != nil {
		return 0, fmt.Errorf("cluster: trim %s: %w", offsetsTopic, err)
	}
	return next, nil
}

func holdsOpen(records []coordinator.LogRecord) bool {
	// Open transactions are last; see resolver.inForce.
	return len(records) > 0 && records[len(records)-1].Txn != nil
}

func (b *broker) deleteBefore(ctx context.Context, offset int64) error {
	partition := kmsg.NewDeleteRecordsRequestTopicPartition()
	partition.Partition, partition.Offset = 0, offset
	topic := kmsg.NewDeleteRecordsRequestTopic()
	topic.Topic = offsetsTopic
	topic.Partitions = append(topic.Partitions, partition)
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 30_000
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, b.client)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}
