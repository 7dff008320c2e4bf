package cluster

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// kfake appends what it is given, as long as the header and the checksum of a batch are right. What Kafka looks at besides
// is looked at here: each record (see checkBatch), the transaction that a batch claims to belong to, and the coordinator's
// topic, to which clients do not write: what they append there would be taken for groups and offsets.

// lookAtProduce goes through a Produce request without decoding it. Only one with something to refuse is taken out.
func (f *front) lookAtProduce(fr *frame, raw []byte) (destination, error) {
	reader := kbin.Reader{Src: raw[4+minFrame:]}
	flexible := fr.version >= 9
	skipHeader(&reader, flexible)
	var txnID *string
	if flexible {
		txnID = reader.CompactNullableString()
	} else {
		txnID = reader.NullableString()
	}
	fr.noReply = reader.Int16() == 0
	reader.Int32() // time-out
	to := toKfake
	for range arrayLen(&reader, flexible) {
		var topic string
		if flexible {
			topic = reader.UnsafeCompactString()
		} else {
			topic = reader.UnsafeString()
		}
		for range arrayLen(&reader, flexible) {
			reader.Int32() // partition
			var records []byte
			if flexible {
				records = reader.CompactNullableBytes()
			} else {
				records = reader.NullableBytes()
			}
			skipTags(&reader, flexible)
			if reader.Ok() && f.refuse(txnID, topic, records) != nil {
				to = local
			}
		}
		skipTags(&reader, flexible)
	}
	skipTags(&reader, flexible)
	if !reader.Ok() {
		return 0, fmt.Errorf("%w: body of Produce v%d", errFrame, fr.version)
	}
	return to, nil
}

func arrayLen(reader *kbin.Reader, flexible bool) int32 {
	if flexible {
		return reader.CompactArrayLen()
	}
	return reader.ArrayLen()
}

func skipTags(reader *kbin.Reader, flexible bool) {
	if flexible {
		kmsg.SkipTags(reader)
	}
}

// refuse reports why a batch is not appended, or nil. A batch that may pass is made what a broker would append.
func (f *front) refuse(txnID *string, topic string, batch []byte) *kerr.Error {
	if topic == offsetsTopic {
		return kerr.InvalidTopicException
	}
	if why := checkBatch(batch); why != nil {
		return why
	}
	attributes := binary.BigEndian.Uint16(batch[batchAttributesAt:])
	by := batchProducer(batch)
	if attributes&attributeTransactional != 0 {
		if txnID == nil {
			return kerr.TransactionalIDAuthorizationFailed
		}
		if why := f.epochs.refuse(*txnID, by); why != nil {
			return why
		}
	} else if f.epochs.ahead(by) {
		return kerr.InvalidProducerEpoch
	}
	if attributes&attributeAppendTime != 0 {
		createTime(batch)
	}
	return nil
}

// createTime takes back that a batch has the time of its appending. Only a topic can have that, and kfake, which
// believes the batch, would change its timestamps and not its checksum.
func createTime(batch []byte) {
	if !intact(batch) {
		return // kfake refuses it
	}
	batch[batchAttributesAt+1] &^= attributeAppendTime
	binary.BigEndian.PutUint32(batch[batchCRCAt:], crc32.Checksum(batch[batchAttributesAt:], castagnoli))
}

func batchProducer(batch []byte) producer {
	return producer{
		id:    int64(binary.BigEndian.Uint64(batch[batchProducerAt:])),
		epoch: int16(binary.BigEndian.Uint16(batch[batchEpochAt:])),
	}
}

// produce answers a Produce request with something to refuse, and has kfake append the rest of it.
func (f *front) produce(req *kmsg.ProduceRequest) (kmsg.Response, error) {
	refused := req.ResponseKind().(*kmsg.ProduceResponse)
	var taken []kmsg.ProduceRequestTopic
	for _, t := range req.Topics {
		rest := t
		rest.Partitions = nil
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			why := f.refuse(req.TransactionID, t.Topic, p.Records)
			if why == nil {
				rest.Partitions = append(rest.Partitions, p)
				continue
			}
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, why.Code
			rp.BaseOffset, rp.LogAppendTime, rp.LogStartOffset = -1, -1, -1
			rt.Partitions = append(rt.Partitions, rp)
		}
		if len(rt.Partitions) > 0 {
			refused.Topics = append(refused.Topics, rt)
		}
		if len(rest.Partitions) > 0 {
			taken = append(taken, rest)
		}
	}
	if req.Acks == 0 {
		// There is no answer that could tell. Kafka closes the connection.
		return nil, fmt.Errorf("%w: Produce with acks=0 and a batch that is refused with code %d", errFrame, refused.Topics[0].Partitions[0].ErrorCode)
	}
	if len(taken) == 0 {
		return refused, nil
	}
	req.Topics = taken
	resp, err := f.broker.produce(context.Background(), req)
	if err != nil {
		return nil, fmt.Errorf("produce the rest of a request with something to refuse: %w", err)
	}
	return merge(resp, refused), nil
}

// merge puts what was refused beside what was taken of the same topics.
func merge(resp, refused *kmsg.ProduceResponse) *kmsg.ProduceResponse {
	for _, rt := range refused.Topics {
		same := func(t kmsg.ProduceResponseTopic) bool { return t.Topic == rt.Topic }
		if i := slices.IndexFunc(resp.Topics, same); i >= 0 {
			resp.Topics[i].Partitions = append(resp.Topics[i].Partitions, rt.Partitions...)
		} else {
			resp.Topics = append(resp.Topics, rt)
		}
	}
	return resp
}

// produce sends a client's request on, in the client's version.
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

// addPartitions refuses to take partitions into a transaction of a producer that does not have the transactional id: kfake
// would begin one, even of a producer without. And it refuses the offsets topic, and with it everything that the request
// names beside it: offsets get there by AddOffsetsToTxn and TxnOffsetCommit.
func (f *front) addPartitions(req *kmsg.AddPartitionsToTxnRequest) kmsg.Response {
	others := kerr.OperationNotAttempted.Code
	switch {
	case !f.epochs.has(req.TransactionalID, req.ProducerID):
		others = kerr.InvalidProducerIDMapping.Code
	case !slices.ContainsFunc(req.Topics, func(t kmsg.AddPartitionsToTxnRequestTopic) bool { return t.Topic == offsetsTopic }):
		return nil
	}
	resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewAddPartitionsToTxnResponseTopic()
		rt.Topic = t.Topic
		code := others
		if t.Topic == offsetsTopic {
			code = kerr.TopicAuthorizationFailed.Code
		}
		for _, p := range t.Partitions {
			rp := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p, code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// addOffsets does the same for AddOffsetsToTxn.
func (f *front) addOffsets(req *kmsg.AddOffsetsToTxnRequest) kmsg.Response {
	if f.epochs.has(req.TransactionalID, req.ProducerID) {
		return nil
	}
	resp := req.ResponseKind().(*kmsg.AddOffsetsToTxnResponse)
	resp.ErrorCode = kerr.InvalidProducerIDMapping.Code
	return resp
}
