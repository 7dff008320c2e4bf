package cluster

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Clients do not write to the coordinator's topic: what they append there would be taken for groups and offsets. As in
// Kafka, Produce answers INVALID_TOPIC_EXCEPTION for it and takes the other topics of the request, and AddPartitionsToTxn
// takes none of its partitions.

// A mention says whether a request names the offsets topic.
type mention uint8

const (
	unmentioned mention = iota
	mentioned
	unsure // the bytes at hand end before the last topic
)

// readTopics walks the topics of a Produce request, behind its time-out, without looking into the records. It fills in
// the frame's mention of the offsets topic, and the producer of the first batch if the request is transactional.
func (f frameReader) readTopics(reader *kbin.Reader, transactional bool, fr *frame) {
	flexible := fr.version >= 9
	topics := arrayLen(reader, flexible)
	first := transactional
	for left := topics - 1; left >= 0; left-- {
		if f.namesOffsets(reader, fr.version) {
			fr.offsets = mentioned
			return
		}
		for range arrayLen(reader, flexible) {
			reader.Int32() // partition
			n := recordsLen(reader, flexible)
			if first {
				fr.txn, first = batchProducer(reader.Src), false
			}
			if n > len(reader.Src) && left == 0 {
				return // these records may be followed by others, but by no topic
			}
			reader.Span(max(n, 0))
			skipTags(reader, flexible)
		}
		skipTags(reader, flexible)
		if !reader.Ok() {
			fr.offsets = unsure
			return
		}
	}
	if !reader.Ok() {
		fr.offsets = unsure
	}
}

func (f frameReader) namesOffsets(reader *kbin.Reader, version int16) bool {
	switch {
	case version >= 13:
		id := reader.Span(16)
		return len(id) == 16 && [16]byte(id) == f.offsetsID
	case version >= 9:
		return string(reader.Span(int(reader.Uvarint())-1)) == offsetsTopic
	}
	return string(reader.Span(int(reader.Int16()))) == offsetsTopic
}

func arrayLen(reader *kbin.Reader, flexible bool) int32 {
	if flexible {
		return reader.CompactArrayLen()
	}
	return reader.ArrayLen()
}

func recordsLen(reader *kbin.Reader, flexible bool) int {
	if flexible {
		return int(reader.Uvarint()) - 1
	}
	return int(reader.Int32())
}

func skipTags(reader *kbin.Reader, flexible bool) {
	if flexible {
		kmsg.SkipTags(reader)
	}
}

// batchProducer is who wrote a batch, nil if its header is not all there.
func batchProducer(batch []byte) *producer {
	if len(batch) < batchHeaderSize {
		return nil
	}
	return &producer{
		id:    int64(binary.BigEndian.Uint64(batch[batchProducerAt:])),
		epoch: int16(binary.BigEndian.Uint16(batch[batchEpochAt:])),
	}
}

// produce answers a Produce request that the router took out: of a fenced producer, or one that names the offsets topic.
func (f *front) produce(req *kmsg.ProduceRequest, fr frame) (kmsg.Response, error) {
	if fr.offsets != mentioned {
		return refuseProduce(req, req.Topics, kerr.InvalidProducerEpoch), nil
	}
	ours := func(t kmsg.ProduceRequestTopic) bool { return t.Topic == offsetsTopic || t.TopicID == f.log.topicID }
	refused := refuseProduce(req, slices.DeleteFunc(slices.Clone(req.Topics), func(t kmsg.ProduceRequestTopic) bool { return !ours(t) }), kerr.InvalidTopicException)
	req.Topics = slices.DeleteFunc(req.Topics, ours)
	if req.Acks == 0 {
		// There is no answer that could tell. Kafka closes the connection.
		return nil, fmt.Errorf("%w: Produce with acks=0 to the internal topic %s", errFrame, offsetsTopic)
	}
	if len(req.Topics) == 0 {
		return refused, nil
	}
	taken, err := f.broker.produce(context.Background(), req)
	if err != nil {
		return nil, fmt.Errorf("produce the other topics of a request that names %s: %w", offsetsTopic, err)
	}
	taken.Topics = append(taken.Topics, refused.Topics...)
	return taken, nil
}

// produce sends a client's request on, in the client's version, which says whether it names topics or their ids.
func (b *broker) produce(ctx context.Context, req *kmsg.ProduceRequest) (*kmsg.ProduceResponse, error) {
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(keyProduce, req.Version)
	client, err := b.newClient(kgo.MaxVersions(versions)) // this is rare enough for a client of its own
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return req.RequestWith(ctx, client)
}

// refuseProduce answers some topics of a request with an error.
func refuseProduce(req *kmsg.ProduceRequest, topics []kmsg.ProduceRequestTopic, why *kerr.Error) *kmsg.ProduceResponse {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, why.Code
			rp.BaseOffset, rp.LogAppendTime, rp.LogStartOffset = -1, -1, -1
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// protectTxn refuses to take the offsets topic into a transaction, and with it everything that the request names beside
// it: offsets get there by AddOffsetsToTxn and TxnOffsetCommit.
func (f *front) protectTxn(req *kmsg.AddPartitionsToTxnRequest) kmsg.Response {
	if !slices.ContainsFunc(req.Topics, func(t kmsg.AddPartitionsToTxnRequestTopic) bool { return t.Topic == offsetsTopic }) {
		return nil
	}
	resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	for _, t := range req.Topics {
		code := kerr.OperationNotAttempted.Code
		if t.Topic == offsetsTopic {
			code = kerr.TopicAuthorizationFailed.Code
		}
		rt := kmsg.NewAddPartitionsToTxnResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p, code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}
