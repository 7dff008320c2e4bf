package classic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/membership"
)

// A TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// An Offset is a committed position: At is the offset of the next record to read.
type Offset struct {
	Topic       string
	Partition   int32
	At          int64
	LeaderEpoch int32 // of the record before At, -1 if unknown
	Metadata    string
}

// OffsetError says that the coordinator refused an offset for a reason that is not the membership. It unwraps to
// kerr's error, so errors.Is(err, kerr.ProducerFenced) and kerr.IsRetriable work.
type OffsetError struct {
	Group     string
	Request   string
	Topic     string
	Partition int32
	Err       error
}

func (e *OffsetError) Error() string {
	return fmt.Sprintf("group %q: %s of %s-%d: %v", e.Group, e.Request, e.Topic, e.Partition, e.Err)
}

// Unwrap returns the cause.
func (e *OffsetError) Unwrap() error { return e.Err }

// Commit commits offsets with the member's token. Errors: [membership.ErrRebalance] (the tasks are still the
// member's, commit again later), [membership.ErrLost] (they may be somebody else's), [*membership.FencedError],
// [*OffsetError], or the transport's. It waits for no rebalance.
func (d *Driver) Commit(ctx context.Context, offsets []Offset) error {
	v, err := d.committing()
	if err != nil || len(offsets) == 0 {
		return err
	}
	topics := byTopic(offsets)
	ids, err := d.topicIDs(ctx, slices.Collect(maps.Keys(topics)))
	if err != nil {
		return err
	}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = v.token.Group, v.token.Generation
	req.MemberID, req.InstanceID = v.token.MemberID, d.cfg.instance()
	for topic, list := range topics {
		t := kmsg.NewOffsetCommitRequestTopic()
		t.Topic, t.TopicID = topic, ids[topic]
		for _, o := range list {
			p := kmsg.NewOffsetCommitRequestTopicPartition()
			p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = o.Partition, o.At, o.LeaderEpoch, kmsg.StringPtr(o.Metadata)
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, d.client)
	if err != nil {
		return fmt.Errorf("group %q: OffsetCommit: %w", d.cfg.Group, err)
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				tp := TopicPartition{nameOf(t.Topic, t.TopicID, ids), p.Partition}
				return d.refused(v.token, membership.OffsetCommit, tp, p.ErrorCode)
			}
		}
	}
	return nil
}

// CommitTxn commits offsets within the transaction of the given producer. Nothing is visible before the transaction
// is committed. Errors are those of [Driver.Commit]; a fenced or invalid producer is an [*OffsetError].
func (d *Driver) CommitTxn(ctx context.Context, txnID string, producerID int64, epoch int16, offsets []Offset) error {
	v, err := d.committing()
	if err != nil || len(offsets) == 0 {
		return err
	}
	topics := byTopic(offsets)
	ids, err := d.topicIDs(ctx, slices.Collect(maps.Keys(topics)))
	if err != nil {
		return err
	}
	if !d.facts.implicitOffsets {
		if err := d.addOffsetsToTxn(ctx, txnID, producerID, epoch); err != nil {
			return err
		}
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = txnID, producerID, epoch
	req.Group, req.Generation = v.token.Group, v.token.Generation
	req.MemberID, req.InstanceID = v.token.MemberID, d.cfg.instance()
	for topic, list := range topics {
		t := kmsg.NewTxnOffsetCommitRequestTopic()
		t.Topic, t.TopicID = topic, ids[topic]
		for _, o := range list {
			p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = o.Partition, o.At, o.LeaderEpoch, kmsg.StringPtr(o.Metadata)
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
	}
	return d.sendTxnOffsetCommit(ctx, req, v.token, ids)
}

// concurrentPause is the wait before a transactional request that met the end of the transaction before is repeated.
const concurrentPause = 20 * time.Millisecond

func (d *Driver) sendTxnOffsetCommit(ctx context.Context, req *kmsg.TxnOffsetCommitRequest, token membership.CommitToken, ids topicIDs) error {
	for {
		resp, err := req.RequestWith(ctx, d.client)
		if err != nil {
			return fmt.Errorf("group %q: TxnOffsetCommit: %w", d.cfg.Group, err)
		}
		tp, code := firstTxnError(resp, ids)
		if code == 0 {
			return nil
		}
		// The marker of the producer's last transaction is still being written.
		if code == kerr.ConcurrentTransactions.Code && wait(ctx, concurrentPause) == nil {
			continue
		}
		return d.refused(token, membership.TxnOffsetCommit, tp, code)
	}
}

func firstTxnError(resp *kmsg.TxnOffsetCommitResponse, ids topicIDs) (TopicPartition, int16) {
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return TopicPartition{nameOf(t.Topic, t.TopicID, ids), p.Partition}, p.ErrorCode
			}
		}
	}
	return TopicPartition{}, 0
}

// addOffsetsToTxn tells the transaction's coordinator that the group is part of it, as clusters with a transaction
// version below 2 need.
func (d *Driver) addOffsetsToTxn(ctx context.Context, txnID string, producerID int64, epoch int16) error {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = txnID, producerID, epoch, d.cfg.Group
	for {
		resp, err := req.RequestWith(ctx, d.client)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if errors.Is(err, kerr.ConcurrentTransactions) && wait(ctx, concurrentPause) == nil {
			continue
		}
		if err != nil {
			return fmt.Errorf("group %q: AddOffsetsToTxn of transactional id %q: %w", d.cfg.Group, txnID, err)
		}
		return nil
	}
}

// committing returns the view under which a commit may go out.
func (d *Driver) committing() (*view, error) {
	v := d.view.Load()
	switch {
	case v.fatal != nil:
		return nil, v.fatal
	case !v.ok:
		return nil, membership.ErrLost
	}
	return v, nil
}

// refused turns an answer to a commit into an error, and tells the machine what it says about the membership. What
// counts is whether the token is still the member's: during a rebalance the generation of a commit is often the one
// before, and the tasks are the member's all the same.
func (d *Driver) refused(token membership.CommitToken, r membership.Request, tp TopicPartition, code int16) error {
	now := d.view.Load()
	if now.fatal != nil { // heard of by another request meanwhile
		return now.fatal
	}
	same := now.token.MemberID == token.MemberID
	switch c := membership.Code(code); c {
	case membership.RebalanceInProgress:
		return membership.ErrRebalance
	case membership.FencedInstanceID:
		if !same {
			return membership.ErrLost // fenced by this member's own later join
		}
		d.post(membership.CommitRefused{Token: token, Request: r, Code: c})
		return &membership.FencedError{InstanceID: token.InstanceID, Group: token.Group, MemberID: token.MemberID, Request: r}
	case membership.IllegalGeneration:
		if now.ok && same && (!now.settled || now.token.Generation != token.Generation) {
			return membership.ErrRebalance
		}
		d.post(membership.CommitRefused{Token: token, Request: r, Code: c})
		return membership.ErrLost
	case membership.UnknownMemberID:
		d.post(membership.CommitRefused{Token: token, Request: r, Code: c})
		return membership.ErrLost
	}
	if code == kerr.GroupIDNotFound.Code { // the whole group is gone; the next heartbeat says so too
		return membership.ErrLost
	}
	return &OffsetError{Group: d.cfg.Group, Request: string(r), Topic: tp.Topic, Partition: tp.Partition, Err: kerr.ErrorForCode(code)}
}

func byTopic(offsets []Offset) map[string][]Offset {
	topics := map[string][]Offset{}
	for _, o := range offsets {
		topics[o.Topic] = append(topics[o.Topic], o)
	}
	return topics
}

// wait pauses, or returns the context's error.
func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
