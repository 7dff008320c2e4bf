package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// settleTimeout bounds how long the answer to an EndTxn waits for its marker to reach the coordinator. Kafka does not
// wait at all (it answers before the markers are written), so giving up is only slower, never wrong.
const settleTimeout = 5 * time.Second

// A front is the router of client frames: group requests and ApiVersions are answered here, the rest is kfake's.
// Its fields do not change after the start; its methods are called by the goroutines of all connections.
type front struct {
	versions *versions
	groups   *groups
	topics   *topics
	log      *offsetLog
	tail     *tail
	intents  *intents
	epochs   *epochs
	dir      *dataDir
	broker   *broker
	logger   *slog.Logger

	defaultPartitions int32
	points            points
}

func (f *front) route(fr frame) (destination, error) {
	if fr.key == keyAPIVersions {
		return local, nil
	}
	if why := f.versions.check(fr.key, fr.version); why != "" {
		return 0, fmt.Errorf("%w: request key %d version %d %s", errFrame, fr.key, fr.version, why)
	}
	if coordinator.Handles(fr.key) {
		return local, nil
	}
	switch fr.key {
	case keyProduce:
		return whole, nil
	case keyElectLeaders, keySASLHandshake, keySASLAuthenticate, keyDescribeACLs, keyCreateACLs, keyDeleteACLs:
		return local, nil
	case keyDeleteTopics, keyDeleteRecords, keyCreateTopics, keyCreatePartitions, keyAlterConfigs, keyIncrementalAlterConfigs,
		keyDescribeConfigs, keyInitProducerID, keyAddPartitions, keyAddOffsets, keyEndTxn:
		return inspect, nil
	}
	return toKfake, nil
}

func (f *front) look(fr *frame, raw []byte) (destination, error) { return f.lookAtProduce(fr, raw) }

func (f *front) answer(gone <-chan struct{}, host string, fr frame, raw []byte) (verdict, error) {
	if fr.key == keyAPIVersions && !f.versions.served(fr.version) {
		return verdict{answer: appendResponse(nil, fr.corr, f.versions.tooNew())}, nil
	}
	req, clientID, err := parse(fr, raw)
	if err != nil {
		return verdict{}, err
	}
	var resp kmsg.Response
	switch req := req.(type) {
	case *kmsg.ApiVersionsRequest:
		resp = f.versions.describe(req)
	case *kmsg.CreateTopicsRequest:
		resp, err = f.createTopics(req)
	case *kmsg.CreatePartitionsRequest:
		resp, err = f.createPartitions(req)
	case *kmsg.AlterConfigsRequest:
		resp, err = f.alterConfigs(req)
	case *kmsg.IncrementalAlterConfigsRequest:
		resp, err = f.incrementalAlterConfigs(req)
	case *kmsg.DescribeConfigsRequest:
		resp, err = f.describeConfigs(req)
	case *kmsg.ElectLeadersRequest:
		resp = f.electLeaders(req)
	case *kmsg.SASLHandshakeRequest, *kmsg.SASLAuthenticateRequest, *kmsg.DescribeACLsRequest, *kmsg.CreateACLsRequest, *kmsg.DeleteACLsRequest:
		resp = withoutSecurity(req)
	case *kmsg.DeleteTopicsRequest:
		resp = f.protectTopics(req)
	case *kmsg.DeleteRecordsRequest:
		if resp = f.protectRecords(req); resp == nil {
			err = notePurge(context.Background(), f.dir, f.broker, req)
		}
	case *kmsg.EndTxnRequest:
		return f.endTxn(req, fr)
	case *kmsg.ProduceRequest:
		resp, err = f.produce(req)
	case *kmsg.InitProducerIDRequest:
		return f.initProducer(req, fr), nil
	case *kmsg.AddPartitionsToTxnRequest:
		resp = f.addPartitions(req)
	case *kmsg.AddOffsetsToTxnRequest:
		resp = f.addOffsets(req)
	default:
		resp, err = f.groups.serve(gone, clientID, host, req)
	}
	if resp == nil || err != nil {
		return verdict{}, err
	}
	return verdict{answer: appendResponse(nil, fr.corr, resp)}, nil
}

// after keeps two orders that clients rely on: a topic is known to the coordinator before its creator hears that it
// exists, and the offsets of a transaction are decided before its producer hears that it ended (see initProducer and
// endTxn). The second also lets the coordinator tell the transactions of one producer apart: a marker reaches it before
// the next commit does.
func (f *front) after(fr frame) after {
	switch fr.key {
	case keyCreateTopics, keyDeleteTopics, keyCreatePartitions:
		return func([]byte) { f.readTopics() }
	}
	return nil
}

// initProducer passes the request on and learns who has the transactional id from then on. A producer that asks for the
// next epoch of its own must be the one of the transactional id: kfake would take any.
func (f *front) initProducer(req *kmsg.InitProducerIDRequest, fr frame) verdict {
	txnID := req.TransactionalID
	if txnID != nil && req.ProducerID >= 0 && req.ProducerEpoch >= 0 && !f.epochs.has(*txnID, req.ProducerID) {
		resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
		resp.ProducerID, resp.ProducerEpoch, resp.ErrorCode = -1, -1, kerr.ProducerFenced.Code
		return verdict{answer: appendResponse(nil, fr.corr, resp)}
	}
	return verdict{after: func(response []byte) {
		if txnID != nil {
			f.learn(*txnID, kmsg.NewPtrInitProducerIDResponse(), req.Version, response)
		}
		f.awaitMarkers()
	}}
}

// endTxn passes the request on between the two notes of its intent, if it is of the producer of its transactional id.
func (f *front) endTxn(req *kmsg.EndTxnRequest, fr frame) (verdict, error) {
	if !f.epochs.has(req.TransactionalID, req.ProducerID) {
		resp := req.ResponseKind().(*kmsg.EndTxnResponse)
		resp.ErrorCode = kerr.InvalidProducerIDMapping.Code
		return verdict{answer: appendResponse(nil, fr.corr, resp)}, nil
	}
	done, err := f.intents.begin(req)
	if err != nil {
		return verdict{}, err
	}
	f.points.reach(atEndTxn)
	return verdict{after: func(response []byte) {
		f.points.reach(atEndedTxn)
		done()
		f.learn(req.TransactionalID, kmsg.NewPtrEndTxnResponse(), req.Version, response)
		f.awaitMarkers()
	}}, nil
}

func (f *front) readTopics() {
	if err := f.topics.refresh(context.Background()); err != nil {
		f.logger.Error("topics could not be read again; commits for new topics are refused until they are", "error", err)
	}
}

// awaitMarkers waits until the coordinator knows of every transaction that has ended, if any holds offsets.
func (f *front) awaitMarkers() {
	if !f.log.anyOpen() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	if err := f.tail.catchUp(ctx); err != nil {
		f.logger.Warn("a transaction was answered before its offsets were decided", "error", err)
	}
}

// protectTopics refuses to delete the coordinator's topic, and with it everything that the request names beside it.
func (f *front) protectTopics(req *kmsg.DeleteTopicsRequest) kmsg.Response {
	protected := false
	for _, t := range req.Topics {
		protected = protected || f.isOffsetsTopic(t.Topic, t.TopicID)
	}
	for _, name := range req.TopicNames {
		protected = protected || name == offsetsTopic
	}
	if !protected {
		return nil
	}
	resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	refuse := func(name *string, id [16]byte) {
		t := kmsg.NewDeleteTopicsResponseTopic()
		t.Topic, t.TopicID, t.ErrorCode = name, id, kerr.OperationNotAttempted.Code
		if f.isOffsetsTopic(name, id) {
			t.ErrorCode = kerr.TopicAuthorizationFailed.Code
		}
		resp.Topics = append(resp.Topics, t)
	}
	for _, t := range req.Topics {
		refuse(t.Topic, t.TopicID)
	}
	for _, name := range req.TopicNames {
		refuse(&name, [16]byte{})
	}
	return resp
}

func (f *front) isOffsetsTopic(name *string, id [16]byte) bool {
	return name != nil && *name == offsetsTopic || id == f.log.topicID
}

// protectRecords refuses to cut the coordinator's log.
func (f *front) protectRecords(req *kmsg.DeleteRecordsRequest) kmsg.Response {
	protected := false
	for _, t := range req.Topics {
		protected = protected || t.Topic == offsetsTopic
	}
	if !protected {
		return nil
	}
	resp := req.ResponseKind().(*kmsg.DeleteRecordsResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewDeleteRecordsResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewDeleteRecordsResponseTopicPartition()
			rp.Partition, rp.LowWatermark, rp.ErrorCode = p.Partition, -1, kerr.OperationNotAttempted.Code
			if t.Topic == offsetsTopic {
				rp.ErrorCode = kerr.TopicAuthorizationFailed.Code
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}
