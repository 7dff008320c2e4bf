package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Producers whose transactions were cut are fenced before anything else uses them. Which they are is kept in a file
// until it is done, so that a start that is killed on the way leaves it to the next.

// noteFences adds the producers of transactions to the file.
func noteFences(d *dataDir, txns []CutTxn) error {
	if len(txns) == 0 {
		return nil
	}
	noted, err := notedFences(d)
	if err != nil {
		return err
	}
	for _, txn := range txns {
		noted[txn.ProducerID] = true
	}
	var lines []byte
	for id := range noted {
		lines = fmt.Appendln(lines, id)
	}
	if err := os.WriteFile(d.file(fencesName), lines, 0o644); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

func notedFences(d *dataDir) (map[int64]bool, error) {
	raw, err := os.ReadFile(d.file(fencesName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	noted := map[int64]bool{}
	for line := range strings.Lines(string(raw)) {
		if id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64); err == nil {
			noted[id] = true
		}
	}
	return noted, nil
}

// fenceNoted fences the producers in the file and empties it.
func fenceNoted(ctx context.Context, d *dataDir, b *broker) error {
	noted, err := notedFences(d)
	if err != nil || len(noted) == 0 {
		return err
	}
	if err := b.fence(ctx, noted); err != nil {
		return err
	}
	if err := removeIfThere(d.file(fencesName)); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// fence raises the epochs of producers, twice: an epoch that is one ahead is where a producer stands after an EndTxn,
// so kfake would take the repeated EndTxn of a transaction that recovery has aborted for one that it has answered
// before, and say that it is committed.
func (b *broker) fence(ctx context.Context, producers map[int64]bool) error {
	listed, err := kmsg.NewPtrListTransactionsRequest().RequestWith(ctx, b.client)
	if err != nil {
		return fmt.Errorf("cluster: list transactions: %w", err)
	}
	for _, txn := range listed.TransactionStates {
		if !producers[txn.ProducerID] {
			continue
		}
		for range 2 {
			if _, err := b.newEpoch(ctx, txn.TransactionalID); err != nil {
				return fmt.Errorf("cluster: fence transactional id %q: %w", txn.TransactionalID, err)
			}
		}
	}
	return nil
}

// newEpoch is what a new incarnation of the producer does first. Its time-out stays what it was.
func (b *broker) newEpoch(ctx context.Context, transactionalID string) (*kmsg.InitProducerIDResponse, error) {
	describe := kmsg.NewPtrDescribeTransactionsRequest()
	describe.TransactionalIDs = []string{transactionalID}
	described, err := describe.RequestWith(ctx, b.client)
	if err != nil {
		return nil, err
	}
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = &transactionalID, -1, -1
	for _, txn := range described.TransactionStates {
		req.TransactionTimeoutMillis = txn.TimeoutMillis
	}
	resp, err := req.RequestWith(ctx, b.client)
	if err != nil {
		return nil, err
	}
	return resp, kerr.ErrorForCode(resp.ErrorCode)
}
