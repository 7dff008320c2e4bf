package groupdiff

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// beginTxn makes sure that both sides have an open transaction that may take the group's offsets. It is no part of the
// comparison: transactions are another coordinator's.
func (p *pair) beginTxn(ctx context.Context, r request) error {
	for s, side := range p.sides {
		n := p.names[s]
		if n.producer == (producer{}) {
			init := kmsg.NewPtrInitProducerIDRequest()
			init.Version, init.TransactionalID, init.TransactionTimeoutMillis = 4, &p.group, timeoutMillis
			resp, err := retry(ctx, side, init, func(r kmsg.Response) int16 { return r.(*kmsg.InitProducerIDResponse).ErrorCode })
			if err != nil {
				return err
			}
			got := resp.(*kmsg.InitProducerIDResponse)
			n.producer = producer{got.ProducerID, got.ProducerEpoch}
		}
		if r.version < 5 || !p.inTxn { // from version 5 on the commit itself adds the partition
			add := kmsg.NewPtrAddOffsetsToTxnRequest()
			add.Version, add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = 3, p.group, n.producer.id, n.producer.epoch, p.group
			if _, err := retry(ctx, side, add, func(r kmsg.Response) int16 { return r.(*kmsg.AddOffsetsToTxnResponse).ErrorCode }); err != nil {
				return err
			}
		}
	}
	p.inTxn = true
	return nil
}

// endTxn ends the transaction on both sides and waits until no offset of the group is pending.
func (p *pair) endTxn(ctx context.Context, commit bool) error {
	if !p.inTxn {
		return nil
	}
	p.inTxn = false
	for s, side := range p.sides {
		n := p.names[s]
		end := kmsg.NewPtrEndTxnRequest()
		end.Version, end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = 3, p.group, n.producer.id, n.producer.epoch, commit
		if _, err := retry(ctx, side, end, func(r kmsg.Response) int16 { return r.(*kmsg.EndTxnResponse).ErrorCode }); err != nil {
			return err
		}
		fetch := request{kind: "fetch", version: 7, stable: true}.build(p.group, n)
		if _, err := retry(ctx, side, fetch, func(r kmsg.Response) int16 { return firstError(r.(*kmsg.OffsetFetchResponse)) }); err != nil {
			return err
		}
	}
	return nil
}

func firstError(r *kmsg.OffsetFetchResponse) int16 {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return p.ErrorCode
			}
		}
	}
	return r.ErrorCode
}

// retry asks again while a coordinator is busy with what it has answered already: Kafka answers an EndTxn before its
// markers are written.
func retry(ctx context.Context, s *side, req kmsg.Request, code func(kmsg.Response) int16) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*patience)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	busy := []*kerr.Error{kerr.ConcurrentTransactions, kerr.UnstableOffsetCommit, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator}
	for {
		resp, err := s.call(ctx, req)
		if err != nil {
			return nil, err
		}
		failed := kerr.TypedErrorForCode(code(resp))
		if failed == nil {
			return resp, nil
		}
		if !slices.Contains(busy, failed) {
			return nil, fmt.Errorf("%s: %s: %w", s.name, kmsg.NameForKey(req.Key()), failed)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %s is still answered %w", s.name, kmsg.NameForKey(req.Key()), failed)
		}
	}
}
