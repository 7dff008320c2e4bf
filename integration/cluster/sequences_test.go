package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestBatchIsNotWrittenTwiceAcrossAKill: a producer that does not know whether its batches arrived before the kill sends
// them again. The last five are recognised by their sequence numbers, and the next one goes on behind them.
func TestBatchIsNotWrittenTwiceAcrossAKill(t *testing.T) {
	c, err := Start(DataDir(t.TempDir()), Topic("lines", 1))
	if err != nil {
		t.Fatal(err)
	}
	init := kmsg.NewPtrInitProducerIDRequest()
	init.ProducerID, init.ProducerEpoch = -1, -1
	given, err := init.RequestWith(t.Context(), c.broker.client)
	if err != nil {
		t.Fatal(err)
	}
	send := func(sequence int32) error {
		return produceAs(t, c, producer{id: given.ProducerID, epoch: given.ProducerEpoch, sequence: sequence})
	}
	for sequence := range int32(12) {
		if err := send(2 * sequence); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	if c, err = Start(DataDir(c.DataDir())); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, sequence := range []int32{14, 16, 18, 20, 22, 24} {
		if err := send(sequence); err != nil {
			t.Errorf("sequence %d: %v", sequence, err)
		}
	}
	if err := send(28); err != kerr.OutOfOrderSequenceNumber {
		t.Errorf("a batch with a gap before it is answered %v", err)
	}
	end, err := c.broker.listOffset(t.Context(), "lines", 0, latest)
	if err != nil || end != 26 {
		t.Errorf("the log ends at %d, %v; want 26", end, err)
	}
}

// produceAs sends a batch of two records and returns how it is answered.
func produceAs(t *testing.T, c *Cluster, by producer) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	partition := kmsg.NewProduceRequestTopicPartition()
	partition.Records = recordBatch([]coordinator.Record{{Value: []byte("a")}, {Value: []byte("b")}}, by)
	topic := kmsg.NewProduceRequestTopic()
	var err error
	topic.Topic = "lines"
	if topic.TopicID, err = c.broker.topicID(ctx, topic.Topic); err != nil {
		t.Fatal(err)
	}
	topic.Partitions = append(topic.Partitions, partition)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 10_000
	req.Topics = append(req.Topics, topic)
	resp, err := c.broker.client.Broker(0).Request(ctx, req)
	if err != nil {
		t.Fatal(fmt.Errorf("produce: %w", err))
	}
	return kerr.ErrorForCode(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
}
