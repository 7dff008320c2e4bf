package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// abort writes the abort markers of transactions that a crash has cut.
func (b *broker) abort(ctx context.Context, txns []CutTxn) error {
	for _, txn := range txns {
		topic := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
		topic.Topic, topic.Partitions = txn.Topic, []int32{txn.Partition}
		marker := kmsg.NewWriteTxnMarkersRequestMarker()
		marker.ProducerID, marker.ProducerEpoch, marker.Committed = txn.ProducerID, txn.ProducerEpoch, false
		marker.Topics = append(marker.Topics, topic)
		req := kmsg.NewPtrWriteTxnMarkersRequest()
		req.Markers = append(req.Markers, marker)
		resp, err := b.client.Broker(0).Request(ctx, req)
		if err == nil {
			err = firstMarkerError(resp.(*kmsg.WriteTxnMarkersResponse))
		}
		// A topic that was deleted just before the crash has no log to mark.
		if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return fmt.Errorf("cluster: abort the transaction of producer %d in %s-%d: %w", txn.ProducerID, txn.Topic, txn.Partition, err)
		}
	}
	return nil
}

func firstMarkerError(resp *kmsg.WriteTxnMarkersResponse) error {
	for _, m := range resp.Markers {
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
