package cluster

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// produceRequest names topics, with one batch of a value each.
func produceRequest(version int16, value []byte, order ...string) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = version, -1, 30_000
	batch := recordBatch([]coordinator.Record{{Key: []byte("k"), Value: value}}, producer{id: -1, epoch: -1})
	for _, name := range order {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Records = batch
		t := kmsg.NewProduceRequestTopic()
		t.Topic = name
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
	}
	return req
}

// TestLookAtProduce: in every version the walk over a request finds what is to be refused, wherever it stands.
func TestLookAtProduce(t *testing.T) {
	f := &front{epochs: &epochs{}}
	for _, tc := range []struct {
		order []string
		cut   int // bytes that the records of the last topic lack
		want  destination
	}{
		{order: nil, want: toKfake},
		{order: []string{"lines"}, want: toKfake},
		{order: []string{"lines", "words"}, want: toKfake},
		{order: []string{offsetsTopic}, want: local},
		{order: []string{"lines", offsetsTopic, "words"}, want: local},
		{order: []string{"lines", "words"}, cut: 1, want: local},
	} {
		for version := int16(3); version <= maxProduce; version++ {
			req := produceRequest(version, []byte("v"), tc.order...)
			if tc.cut > 0 {
				p := &req.Topics[len(req.Topics)-1].Partitions[0]
				p.Records = p.Records[:len(p.Records)-tc.cut]
			}
			req.Acks = version % 2
			raw := encode(req, 1)
			fr := frame{size: len(raw) - 4, version: version}
			to, err := f.lookAtProduce(&fr, raw)
			if err != nil || to != tc.want || fr.noReply != (req.Acks == 0) {
				t.Errorf("version %d, topics %v, %d bytes less: goes to %d, no reply %v, %v", version, tc.order, tc.cut, to, fr.noReply, err)
			}
			for n := 4 + minFrame; n < len(raw); n++ {
				if _, err := f.lookAtProduce(&frame{size: n - 4, version: version}, raw[:n]); err == nil {
					t.Fatalf("version %d, %d bytes of %d: no error", version, n, len(raw))
				}
			}
		}
	}
}

// TestNobodyWritesToTheOffsetsTopic: as in Kafka, clients cannot append to it, and what they send to other topics with
// the same request is taken. Large requests are known only when they have been read.
func TestNobodyWritesToTheOffsetsTopic(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Start(Topic("lines", 1), Topic("words", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	before, err := adm.ListEndOffsets(ctx, offsetsTopic)
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: offsetsTopic, Key: []byte("k")}).FirstErr(); !errors.Is(err, kerr.InvalidTopicException) {
		t.Errorf("a client's record: %v", err)
	}
	sent := int64(0)
	for _, version := range []int16{3, 9, 12} {
		for _, size := range []int{10, 2 * readBuffer, trustedFrame / 2} {
			sent++
			t.Run(fmt.Sprintf("v%d, %d bytes", version, size), func(t *testing.T) {
				resp := exchange(t, c, produceRequest(version, bytes.Repeat([]byte("v"), size), "lines", offsetsTopic, "words"))
				codes := map[string]int16{}
				for _, topic := range resp.(*kmsg.ProduceResponse).Topics {
					codes[topic.Topic] = topic.Partitions[0].ErrorCode
				}
				if len(codes) != 3 || codes["lines"] != 0 || codes["words"] != 0 || codes[offsetsTopic] != kerr.InvalidTopicException.Code {
					t.Errorf("answered %v", codes)
				}
			})
		}
	}
	after, err := adm.ListEndOffsets(ctx, offsetsTopic, "lines", "words")
	if err != nil {
		t.Fatal(err)
	}
	end := func(all kadm.ListedOffsets, topic string) int64 { o, _ := all.Lookup(topic, 0); return o.Offset }
	if end(after, offsetsTopic) != end(before, offsetsTopic) || end(after, "lines") != sent || end(after, "words") != sent {
		t.Errorf("%d requests left %d, %d and %d records", sent, end(after, offsetsTopic)-end(before, offsetsTopic), end(after, "lines"), end(after, "words"))
	}
}

func TestNobodyTakesTheOffsetsTopicIntoATransaction(t *testing.T) {
	c, err := Start(Topic("lines", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	id := initProducer(t, c, "t", time.Minute).id
	for version := range int16(maxAddPartitions + 1) {
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.Version, req.TransactionalID, req.ProducerID = version, "t", id
		req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: "lines", Partitions: []int32{0}}, {Topic: offsetsTopic, Partitions: []int32{0}}}
		answered := exchange(t, c, req).(*kmsg.AddPartitionsToTxnResponse).Topics
		if len(answered) != 2 || answered[0].Partitions[0].ErrorCode != kerr.OperationNotAttempted.Code ||
			answered[1].Partitions[0].ErrorCode != kerr.TopicAuthorizationFailed.Code {
			t.Errorf("version %d answered %+v", version, answered)
		}
	}
}

func exchange(t *testing.T, c *Cluster, req kmsg.Request) kmsg.Response {
	t.Helper()
	return ask(t, c.Brokers()[0], req)
}

// ask sends one request in its own version, on a connection of its own, and reads the answer.
func ask(t *testing.T, addr string, req kmsg.Request) kmsg.Response {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Write(encode(req, 1)); err != nil {
		t.Fatal(err)
	}
	var size [4]byte
	if _, err := io.ReadFull(nc, size[:]); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(nc, body); err != nil {
		t.Fatal(err)
	}
	body = body[4:] // the correlation id
	resp := req.ResponseKind()
	if resp.IsFlexible() {
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		t.Fatal(err)
	}
	return resp
}
