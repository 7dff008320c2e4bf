package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// A txnProducer is a transactional client whose offsets are committed by raw requests, as the stream thread does it.
type txnProducer struct {
	cl    *kgo.Client
	id    string
	group string
	old   bool // speaks transaction version 1: the group is added to the transaction first
}

func newTxnProducer(t testing.TB, c *cluster.Cluster, id string, opts ...kgo.Opt) *txnProducer {
	t.Helper()
	return &txnProducer{cl: client(t, c, append([]kgo.Opt{kgo.TransactionalID(id)}, opts...)...), id: id, group: "g-" + id}
}

// begin starts a transaction and puts one record into it.
func (p *txnProducer) begin(t testing.TB, value string) {
	t.Helper()
	if err := p.cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, p.cl, "lines", value, 1)
}

// offset adds an offset of lines-0 to the transaction.
func (p *txnProducer) offset(ctx context.Context, at int64) error {
	return p.offsetOf(ctx, "lines", at)
}

// offsetOf is offset for partition 0 of any topic.
func (p *txnProducer) offsetOf(ctx context.Context, topic string, at int64) error {
	id, epoch, err := p.cl.ProducerID(ctx)
	if err != nil {
		return err
	}
	return p.offsetAs(ctx, id, epoch, topic, at)
}

func (p *txnProducer) offsetAs(ctx context.Context, id int64, epoch int16, name string, at int64) error {
	if p.old {
		add := kmsg.NewPtrAddOffsetsToTxnRequest()
		add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = p.id, id, epoch, p.group
		resp, err := add.RequestWith(ctx, p.cl)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err != nil {
			return fmt.Errorf("AddOffsetsToTxn: %w", err)
		}
	}
	topicID, err := topicID(ctx, p.cl, name)
	if err != nil {
		return err
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch, req.Generation = p.id, p.group, id, epoch, -1
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.TopicID = name, topicID
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = at
	topic.Partitions = append(topic.Partitions, partition)
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, p.cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

func (p *txnProducer) end(t testing.TB, try kgo.TransactionEndTry) {
	t.Helper()
	if err := p.cl.EndTransaction(deadline(t), try); err != nil {
		t.Fatal(err)
	}
}

func topicID(ctx context.Context, cl *kgo.Client, name string) ([16]byte, error) {
	topics, err := kadm.NewClient(cl).ListTopics(ctx, name)
	if err != nil {
		return [16]byte{}, err
	}
	return topics[name].ID, topics[name].Err
}

// stable fetches the committed offset of lines-0 with require_stable: -1 is none.
func (p *txnProducer) stable(t testing.TB, cl *kgo.Client) (int64, error) {
	t.Helper()
	ctx := deadline(t)
	id, err := topicID(ctx, cl, "lines")
	if err != nil {
		t.Fatal(err)
	}
	topic := kmsg.NewOffsetFetchRequestGroupTopic()
	topic.Topic, topic.TopicID, topic.Partitions = "lines", id, []int32{0}
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = p.group
	group.Topics = append(group.Topics, topic)
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable, req.Groups = true, []kmsg.OffsetFetchRequestGroup{group}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		t.Fatal(err)
	}
	got := resp.Groups[0].Topics[0].Partitions[0]
	return got.Offset, kerr.ErrorForCode(got.ErrorCode)
}

// wantStable is for what must hold at once, without waiting.
func (p *txnProducer) wantStable(t testing.TB, cl *kgo.Client, want int64) {
	t.Helper()
	if got, err := p.stable(t, cl); err != nil || got != want {
		t.Fatalf("stable offset is %d, %v; want %d", got, err, want)
	}
}

func (p *txnProducer) wantUnstable(t testing.TB, cl *kgo.Client) {
	t.Helper()
	if got, err := p.stable(t, cl); !errors.Is(err, kerr.UnstableOffsetCommit) {
		t.Fatalf("with the transaction open, the stable offset is %d, %v; want UNSTABLE_OFFSET_COMMIT", got, err)
	}
}

// transactionVersions are clients of both kinds: version 2 has a new epoch for each transaction, version 1 keeps it.
func transactionVersions(t *testing.T, run func(t *testing.T, p *txnProducer, c *cluster.Cluster)) {
	t.Run("v2", func(t *testing.T) {
		c := start(t, cluster.Topic("lines", 1))
		run(t, newTxnProducer(t, c, "tx"), c)
	})
	t.Run("v1", func(t *testing.T) {
		c := start(t, cluster.Topic("lines", 1))
		p := newTxnProducer(t, c, "tx", kgo.MaxVersions(kversion.V3_6_0()))
		p.old = true
		run(t, p, c)
	})
}

func TestOffsetsFollowTheirTransaction(t *testing.T) {
	transactionVersions(t, func(t *testing.T, p *txnProducer, c *cluster.Cluster) {
		ctx, other := deadline(t), client(t, c)
		committed := int64(-1)
		for i := range int64(10) {
			p.begin(t, "v")
			if err := p.offset(ctx, 10+i); err != nil {
				t.Fatal(err)
			}
			p.wantUnstable(t, other)
			if i%3 == 2 {
				p.end(t, kgo.TryAbort)
			} else {
				p.end(t, kgo.TryCommit)
				committed = 10 + i
			}
			p.wantStable(t, other, committed)
		}
	})
}

func TestTransactionTimeoutDropsOffsets(t *testing.T) {
	c := start(t, cluster.Topic("lines", 1))
	p := newTxnProducer(t, c, "tx", kgo.TransactionTimeout(300*time.Millisecond))
	other := client(t, c)
	p.begin(t, "v")
	if err := p.offset(deadline(t), 5); err != nil {
		t.Fatal(err)
	}
	p.wantUnstable(t, other)
	for {
		got, err := p.stable(t, other)
		if errors.Is(err, kerr.UnstableOffsetCommit) {
			continue // the deadline of stable bounds this
		}
		if err != nil || got != -1 {
			t.Fatalf("after the time-out the offset is %d, %v; want none", got, err)
		}
		break
	}
	if err := p.cl.EndTransaction(deadline(t), kgo.TryCommit); err == nil {
		t.Fatal("the commit after the time-out succeeded")
	}
	p.wantStable(t, other, -1)
}

// TestNewIncarnationEndsTheOldTransaction: InitProducerID aborts what the predecessor left open, and the offsets are
// readable when it answers.
func TestNewIncarnationEndsTheOldTransaction(t *testing.T) {
	c := start(t, cluster.Topic("lines", 1))
	ctx, other := deadline(t), client(t, c)
	old := newTxnProducer(t, c, "tx")
	old.begin(t, "v")
	if err := old.offset(ctx, 5); err != nil {
		t.Fatal(err)
	}
	id, epoch, err := old.cl.ProducerID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	successor := newTxnProducer(t, c, "tx")
	if _, _, err := successor.cl.ProducerID(ctx); err != nil {
		t.Fatal(err)
	}
	successor.wantStable(t, other, -1)

	if err := old.offsetAs(ctx, id, epoch, "lines", 6); !errors.Is(err, kerr.InvalidProducerEpoch) {
		t.Fatalf("offset of the zombie: %v, want INVALID_PRODUCER_EPOCH", err)
	}
	// The old client does not know yet that it is fenced, and goes on with its transaction.
	if err := old.cl.ProduceSync(ctx, &kgo.Record{Topic: "lines", Value: []byte("late")}).FirstErr(); !errors.Is(err, kerr.InvalidProducerEpoch) {
		t.Fatalf("record of the zombie: %v, want INVALID_PRODUCER_EPOCH", err)
	}
	state, err := kadm.NewClient(other).DescribeTransactions(ctx, "tx")
	if err != nil || state["tx"].State == "Ongoing" {
		t.Fatalf("the zombie left the successor with a transaction: %+v, %v", state["tx"], err)
	}
	successor.begin(t, "w")
	if err := successor.offset(ctx, 7); err != nil {
		t.Fatal(err)
	}
	successor.end(t, kgo.TryCommit)
	successor.wantStable(t, other, 7)
}

func TestOffsetForAnUnknownTransaction(t *testing.T) {
	c := start(t, cluster.Topic("lines", 1))
	p := newTxnProducer(t, c, "nobody")
	if err := p.offsetAs(deadline(t), 4711, 0, "lines", 1); !errors.Is(err, kerr.InvalidProducerIDMapping) {
		t.Fatalf("offset of a transaction that never was: %v, want INVALID_PRODUCER_ID_MAPPING", err)
	}
}

func TestGroupTransactSession(t *testing.T) {
	c := start(t, cluster.Topic("in", 2), cluster.Topic("out", 1))
	produce(t, client(t, c), "in", "v", 200)
	opts := append(fromStart("in"),
		kgo.SeedBrokers(c.Brokers()...), kgo.ConsumerGroup("copy"), kgo.TransactionalID("copy"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(100*time.Millisecond))
	s, err := kgo.NewGroupTransactSession(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := deadline(t)
	for copied := 0; copied < 200; {
		fetches := s.PollRecords(ctx, 30)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		if err := s.Begin(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			s.Produce(ctx, &kgo.Record{Topic: "out", Value: r.Value}, kgo.AbortingFirstErrPromise(s.Client()).Promise())
		})
		committed, err := s.End(ctx, kgo.TryCommit)
		if err != nil {
			t.Fatal(err)
		}
		if committed {
			copied += fetches.NumRecords()
		}
	}
	reader := client(t, c, append(fromStart("out"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
	seen := map[string]bool{}
	for _, v := range consume(t, reader, 200) {
		if seen[v] {
			t.Fatalf("%s was copied twice", v)
		}
		seen[v] = true
	}
	total := int64(0)
	for _, at := range fetched(t, kadm.NewClient(reader), "copy") {
		total += at
	}
	if total != 200 {
		t.Fatalf("committed offsets add up to %d, want 200", total)
	}
}
