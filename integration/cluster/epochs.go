package cluster

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// epochs knows which producer each transactional id has, and its newest epoch, to keep from kfake what others send in its
// name. kfake refuses a fenced producer's batches too, but before it looks at the epoch it adds the partition to the
// transaction of that producer id: the fenced one's successor finds itself with an open transaction that it does not know
// of, and is fenced in turn when that times out. A higher epoch than it gave kfake believes, also of a batch outside of
// transactions, and it takes any producer id for that of the transactional id beside it: a transactional batch of a
// producer without one keeps the last stable offset where it is for ever.
//
// What it knows may lag, since a time-out raises an epoch unseen: then kfake decides as always.
type epochs struct {
	mu    sync.RWMutex
	known map[int64]incarnation // by producer id
}

// An incarnation is the newest one of a transactional producer.
type incarnation struct {
	txnID string
	epoch int16
}

// lastEpoch is the last one that a producer id is given. kfake does not survive that a transaction of it times out: it
// aborts the transaction of the next producer id instead, which has none, again and again.
const lastEpoch = math.MaxInt16 - 1

// readEpochs asks kfake for all of them.
func readEpochs(ctx context.Context, b *broker) (*epochs, error) {
	e := &epochs{known: map[int64]incarnation{}}
	listed, err := kmsg.NewPtrListTransactionsRequest().RequestWith(ctx, b.client)
	if err != nil {
		return nil, fmt.Errorf("cluster: list transactions: %w", err)
	}
	describe := kmsg.NewPtrDescribeTransactionsRequest()
	for _, txn := range listed.TransactionStates {
		describe.TransactionalIDs = append(describe.TransactionalIDs, txn.TransactionalID)
	}
	described, err := describe.RequestWith(ctx, b.client)
	if err != nil {
		return nil, fmt.Errorf("cluster: describe transactions: %w", err)
	}
	for _, txn := range described.TransactionStates {
		e.known[txn.ProducerID] = incarnation{txn.TransactionalID, txn.ProducerEpoch}
	}
	return e, nil
}

// refuse reports why a producer may not write in a transaction of txnID, or nil.
func (e *epochs) refuse(txnID string, p producer) *kerr.Error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	switch known, ok := e.known[p.id]; {
	case !ok || known.txnID != txnID:
		return kerr.InvalidProducerIDMapping
	case known.epoch != p.epoch:
		return kerr.InvalidProducerEpoch
	}
	return nil
}

// ahead reports whether a producer claims a later epoch than it was given. Of producers without transactional id that is
// not known: they raise theirs themselves.
func (e *epochs) ahead(p producer) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	known, ok := e.known[p.id]
	return ok && p.epoch > known.epoch
}

// has reports whether a producer is the one of a transactional id, in whatever epoch.
func (e *epochs) has(txnID string, producerID int64) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	known, ok := e.known[producerID]
	return ok && known.txnID == txnID
}

func (e *epochs) note(txnID string, id int64, epoch int16) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if newest, ok := e.known[id]; !ok || epoch > newest.epoch {
		e.known[id] = incarnation{txnID, epoch}
	}
}

// learn reads a response that may give a producer a new id or epoch. In place of the last epoch it gives the client the
// first of the next producer id.
func (f *front) learn(txnID string, resp kmsg.Response, version int16, raw []byte) {
	resp.SetVersion(version)
	body := raw[8:]
	if resp.IsFlexible() {
		body = body[1:] // no tags: the response is kfake's
	}
	if err := resp.ReadFrom(body); err != nil {
		return
	}
	var code int16
	var id *int64
	var epoch *int16
	switch resp := resp.(type) {
	case *kmsg.InitProducerIDResponse:
		code, id, epoch = resp.ErrorCode, &resp.ProducerID, &resp.ProducerEpoch
	case *kmsg.EndTxnResponse:
		code, id, epoch = resp.ErrorCode, &resp.ProducerID, &resp.ProducerEpoch
	}
	if code != 0 || *id < 0 {
		return
	}
	if *epoch == lastEpoch {
		next, err := f.broker.newEpoch(context.Background(), txnID)
		if err != nil {
			f.logger.Error("a producer is left with the last epoch of its id", "transactional id", txnID, "error", err)
			return
		}
		*id, *epoch = next.ProducerID, next.ProducerEpoch
		copy(body, resp.AppendTo(nil)) // of the same length
	}
	f.epochs.note(txnID, *id, *epoch)
}
