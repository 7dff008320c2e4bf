package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// initProducer begins an incarnation; without transactional id it is one that is only idempotent.
func initProducer(t *testing.T, c *Cluster, txnID string, timeout time.Duration) producer {
	t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionTimeoutMillis = 4, int32(timeout.Milliseconds())
	if txnID != "" {
		req.TransactionalID = &txnID
	}
	resp := exchange(t, c, req).(*kmsg.InitProducerIDResponse)
	if resp.ErrorCode != 0 {
		t.Fatal(kerr.ErrorForCode(resp.ErrorCode))
	}
	return producer{id: resp.ProducerID, epoch: resp.ProducerEpoch, transactional: true}
}

// inTransaction is a request of one record in a transaction.
func inTransaction(txnID *string, by producer) *kmsg.ProduceRequest {
	req := produceRequest(maxProduce, []byte("v"), "lines")
	req.TransactionID = txnID
	b := kmsg.RecordBatch{
		Magic: 2, Attributes: attributeTransactional, ProducerID: by.id, ProducerEpoch: by.epoch, NumRecords: 1, Records: testRecord(0),
	}
	req.Topics[0].Partitions[0].Records = seal(b)
	return req
}

// TestTransactionsInTheNameOfOthers: only the newest incarnation of a transactional id writes in its transactions, and a
// producer without one in none. What is refused leaves no transaction behind.
func TestTransactionsInTheNameOfOthers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Start(Topic("lines", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	old := initProducer(t, c, "tx", time.Minute)
	own := initProducer(t, c, "tx", time.Minute)
	idempotent := initProducer(t, c, "", time.Minute)
	ahead := producer{id: own.id, epoch: own.epoch + 5}
	unknown := producer{id: own.id + 1}
	tx, other := kmsg.StringPtr("tx"), kmsg.StringPtr("other")
	for name, tc := range map[string]struct {
		txnID *string
		by    producer
		want  *kerr.Error
	}{
		"fenced":                 {tx, old, kerr.InvalidProducerEpoch},
		"an epoch ahead":         {tx, ahead, kerr.InvalidProducerEpoch},
		"another's id":           {other, own, kerr.InvalidProducerIDMapping},
		"without id":             {nil, own, kerr.TransactionalIDAuthorizationFailed},
		"an idempotent producer": {tx, idempotent, kerr.InvalidProducerIDMapping},
		"nobody":                 {tx, unknown, kerr.InvalidProducerIDMapping},
	} {
		got := exchange(t, c, inTransaction(tc.txnID, tc.by)).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode
		if got != tc.want.Code {
			t.Errorf("%s: answered %d, want %v", name, got, tc.want)
		}
	}
	partitions := kmsg.NewPtrAddPartitionsToTxnRequest()
	partitions.TransactionalID, partitions.ProducerID, partitions.ProducerEpoch = "tx", idempotent.id, idempotent.epoch
	partitions.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: "lines", Partitions: []int32{0}}}
	if got := exchange(t, c, partitions).(*kmsg.AddPartitionsToTxnResponse).Topics[0].Partitions[0].ErrorCode; got != kerr.InvalidProducerIDMapping.Code {
		t.Errorf("AddPartitionsToTxn of an idempotent producer: %d", got)
	}
	offsets := kmsg.NewPtrAddOffsetsToTxnRequest()
	offsets.TransactionalID, offsets.ProducerID, offsets.ProducerEpoch, offsets.Group = "tx", idempotent.id, idempotent.epoch, "g"
	if got := exchange(t, c, offsets).(*kmsg.AddOffsetsToTxnResponse).ErrorCode; got != kerr.InvalidProducerIDMapping.Code {
		t.Errorf("AddOffsetsToTxn of an idempotent producer: %d", got)
	}
	ended := kmsg.NewPtrEndTxnRequest()
	ended.Version, ended.TransactionalID, ended.ProducerID, ended.ProducerEpoch = 5, "tx", idempotent.id, idempotent.epoch
	if got := exchange(t, c, ended).(*kmsg.EndTxnResponse).ErrorCode; got != kerr.InvalidProducerIDMapping.Code {
		t.Errorf("EndTxn of an idempotent producer: %d", got)
	}
	next := kmsg.NewPtrInitProducerIDRequest()
	next.Version, next.TransactionalID, next.ProducerID, next.ProducerEpoch, next.TransactionTimeoutMillis = 4, tx, idempotent.id, idempotent.epoch, 1000
	if got := exchange(t, c, next).(*kmsg.InitProducerIDResponse).ErrorCode; got != kerr.ProducerFenced.Code {
		t.Errorf("InitProducerID of an idempotent producer: %d", got)
	}
	plain := inTransaction(tx, ahead)
	plain.TransactionID = nil
	plain.Topics[0].Partitions[0].Records = seal(kmsg.RecordBatch{
		Magic: 2, ProducerID: ahead.id, ProducerEpoch: ahead.epoch, NumRecords: 1, Records: testRecord(0)})
	if got := exchange(t, c, plain).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; got != kerr.InvalidProducerEpoch.Code {
		t.Errorf("an epoch ahead, outside of transactions: %d", got)
	}
	adm := kadm.NewClient(healthyClient(t, c))
	stable, err := adm.ListCommittedOffsets(ctx, "lines")
	if err != nil {
		t.Fatal(err)
	}
	if end, err := adm.ListEndOffsets(ctx, "lines"); err != nil || end["lines"][0].Offset != 0 || stable["lines"][0].Offset != 0 {
		t.Errorf("the log ends at %+v, stable to %+v, %v", end["lines"][0], stable["lines"][0], err)
	}
	if got := exchange(t, c, inTransaction(tx, own)).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; got != 0 {
		t.Errorf("the newest incarnation: %d", got)
	}
}

// TestLastEpochIsNotHandedOut: in place of the last epoch of a producer id comes the first of another, over a restart too,
// and a time-out of its transaction does no harm.
func TestLastEpochIsNotHandedOut(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	c, err := Start(DataDir(dir), Topic("lines", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { c.Close() }()
	by := initProducer(t, c, "tx", 50*time.Millisecond)
	by.epoch = lastEpoch - 1 // 32,765 transactions later; kfake believes an epoch that is ahead
	if resp, err := c.broker.produce(ctx, inTransaction(kmsg.StringPtr("tx"), by)); err != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatal(resp, err)
	}
	end := kmsg.NewPtrEndTxnRequest()
	end.Version, end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = 5, "tx", by.id, by.epoch, true
	ended := exchange(t, c, end).(*kmsg.EndTxnResponse)
	if ended.ErrorCode != 0 || ended.ProducerID == by.id || ended.ProducerEpoch != 0 {
		t.Fatalf("%+v, want another producer id and epoch 0", ended)
	}
	next := producer{id: ended.ProducerID, epoch: ended.ProducerEpoch}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err = Start(DataDir(dir)); err != nil {
		t.Fatal(err)
	}
	if got := exchange(t, c, inTransaction(kmsg.StringPtr("tx"), next)).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; got != 0 {
		t.Fatalf("the next producer id: %d", got)
	}
	adm := kadm.NewClient(healthyClient(t, c))
	until(ctx, t, "the transaction to time out", func() bool {
		described, err := adm.DescribeTransactions(ctx, "tx")
		return err == nil && described["tx"].State == "Empty"
	})
}
