package thread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/classic"
)

// Exactly-once: everything that a thread produces between two commits, and its input positions, are one transaction of the
// thread's own producer. It is begun by the first record, never across a wait for input, so that an idle thread has none.
//
// Path A, abort. The transaction cannot be committed: it is aborted by initialising the transactional id again, the overlay is
// dropped, the inputs go back to the committed positions. The local state is that of the last commit, so there is
// nothing to restore and nothing to wipe.
//
// Path U, in doubt. The answer to C5 got lost. Initialising the transactional id again waits until the brokers have decided;
// then the committed positions tell how: they are ours, metadata included (it holds a number that grows with every commit),
// or those from before.

// A thread gives up when more than maxAborts transactions in a row were aborted, over longer than abortPatience: then the cause
// does not go away. Brokers that die again and again end one transaction each time, and must not end the application.
const (
	maxAborts     = 5
	abortPatience = time.Minute
	abortPause    = 100 * time.Millisecond // before the second attempt; it grows with each
	maxAbortPause = time.Second
)

// transaction is the state of the thread's transaction. The thread's goroutine owns it.
type transaction struct {
	open    bool
	aborts  int       // since the last commit
	aborted time.Time // the first of them
}

// abort counts one and says whether to give up, or how long to wait before the next attempt.
func (x *transaction) abort(now time.Time) (wait time.Duration, hopeless bool) {
	if x.aborts++; x.aborts == 1 {
		x.aborted = now
	}
	return min(time.Duration(x.aborts-1)*abortPause, maxAbortPause), x.aborts > maxAborts && now.Sub(x.aborted) > abortPatience
}

// beginTxn begins a transaction if there is none. Without exactly-once it does nothing.
func (t *Thread) beginTxn() error {
	if t.txn.open || t.cfg.TransactionalID == "" {
		return nil
	}
	t.points.reach(AtTxn)
	if err := t.sink.client.BeginTransaction(); err != nil {
		return fmt.Errorf("beginning a transaction of %s: %w", t.cfg.TransactionalID, err)
	}
	t.txn.open = true
	return nil
}

// commitTxn is C4 and C5.
func (t *Thread) commitTxn(offsets []classic.Offset) error {
	if len(offsets) == 0 {
		// The group would not see this commit, so it could not fence it.
		return t.abort(errors.New("records were produced by no task that has positions to commit"))
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.cfg.CommitTimeout)
	defer cancel()
	id, epoch, err := t.sink.client.ProducerID(ctx)
	if err == nil {
		err = t.group.CommitTxn(ctx, t.cfg.TransactionalID, id, epoch, offsets) // C4
	}
	t.points.reach(AtC4)
	if isTransactionError(err) {
		return t.abort(err)
	}
	if err := t.commitFailed(err); err != nil {
		return err
	}
	if err := t.sink.client.EndTransaction(ctx, kgo.TryCommit); err != nil { // C5
		if err := t.inDoubt(err, offsets); err != nil {
			return err
		}
	}
	t.txn = transaction{}
	t.points.reach(AtC5)
	return nil
}

// transactionErrors say that a transaction is over, or its producer replaced, one way or the other.
var transactionErrors = []error{
	kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidProducerIDMapping, kerr.InvalidTxnState,
	kerr.TransactionAbortable, kerr.UnknownProducerID, kerr.OutOfOrderSequenceNumber, kerr.TransactionalIDNotFound,
}

func isTransactionError(err error) bool {
	return slices.ContainsFunc(transactionErrors, func(e error) bool { return errors.Is(err, e) })
}

// errAborted unwinds a commit after the abort path has put everything back.
var errAborted = errors.New("the transaction was aborted")

// produceFailed handles a record that the brokers did not take. Within a transaction, what only ends the transaction leads to
// the abort path; anything else would come again.
func (t *Thread) produceFailed(err error) error {
	if t.txn.open && isTransactionError(err) {
		return t.abort(err)
	}
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	return err
}

// abort is path A. It returns errAborted when the thread can go on.
func (t *Thread) abort(cause error) error {
	wait, hopeless := t.txn.abort(time.Now())
	if hopeless {
		return fmt.Errorf("%d transactions in a row were aborted, over %v, the last one because: %w", t.txn.aborts, abortPatience, cause)
	}
	t.log.Warn("transaction aborted, its input is processed again", "thread", t.name, "err", cause)
	t.stats.Aborts.Add(1)
	if err := pause(t.ctx, wait); err != nil {
		return err
	}
	if err := t.renewProducer(cause); err != nil {
		return err
	}
	t.rewind()
	return errAborted
}

// rewind drops what is not committed and reads the inputs from the committed positions again.
func (t *Thread) rewind() {
	t.fetcher.stop() // the batch in hand is read again
	for _, o := range t.tasks {
		t.removeRoutes(o)
		o.task.Abort()
		o.commit = taskCommit{} // the old producer's promises may still touch the load
		t.addRoutes(o)
	}
	t.fetcher.start(t.ctx)
}

// inDoubt is path U. It returns nil when the transaction turned out to be committed.
func (t *Thread) inDoubt(cause error, sent []classic.Offset) error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx) // the next owner finds out
	}
	t.log.Warn("the end of a transaction was not confirmed, finding out what became of it", "thread", t.name, "err", cause)
	if err := t.renewProducer(cause); err != nil {
		return err
	}
	probe := sent[0]
	where := classic.TopicPartition{Topic: probe.Topic, Partition: probe.Partition}
	var found map[classic.TopicPartition]classic.Offset
	err := t.patiently("committed positions", func(ctx context.Context) (err error) {
		found, err = t.group.Committed(ctx, []classic.TopicPartition{where})
		return err
	})
	if err != nil {
		return fmt.Errorf("asking whether a transaction of %s was committed: %w", t.cfg.TransactionalID, err)
	}
	if at := found[where]; at.At == probe.At && at.Metadata == probe.Metadata {
		return nil
	}
	t.stats.Aborts.Add(1)
	t.txn.abort(time.Now())
	t.rewind()
	return errAborted
}

// renewProducer replaces the thread's producer. Initialising the transactional id decides whatever was open. It must not be
// done when another instance has taken our place, because that would fence the newer one: the group is asked first, each time.
func (t *Thread) renewProducer(cause error) error {
	return t.patiently("a new epoch of the producer", func(ctx context.Context) error {
		if err := t.checkMember(ctx, cause); err != nil {
			return err
		}
		t.sink.client.Close()
		t.txn.open = false
		client, err := t.cfg.newProducer()
		if err != nil {
			return err
		}
		t.sink = newSink(t.ctx, client)
		return t.cfg.initTransactionalID(ctx, client)
	})
}

// checkMember asks the coordinator whether this thread still is who it was, with a heartbeat.
func (t *Thread) checkMember(ctx context.Context, cause error) error {
	token, ok := t.group.Token()
	if !ok {
		return nil // between two memberships: nobody can have fenced us as a member
	}
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = token.Group, token.MemberID, token.Generation
	if token.InstanceID != "" {
		req.InstanceID = kmsg.StringPtr(token.InstanceID)
	}
	resp, err := req.RequestWith(ctx, t.requests)
	if err != nil {
		return fmt.Errorf("asking the group whether this thread was replaced, after %q: %w", cause, err)
	}
	if kerr.ErrorForCode(resp.ErrorCode) == kerr.FencedInstanceID {
		return &membership.FencedError{InstanceID: token.InstanceID, Group: token.Group, MemberID: token.MemberID, Request: membership.Heartbeat}
	}
	return nil
}

// abortQuietly ends the open transaction when the thread ends.
func (t *Thread) abortQuietly(ctx context.Context) error {
	if err := t.sink.client.AbortBufferedRecords(ctx); err != nil {
		return err
	}
	t.txn.open = false
	return t.sink.client.EndTransaction(ctx, kgo.TryAbort)
}
