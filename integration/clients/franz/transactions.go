package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// transactions has kgo's GroupTransactSession copy what it polls: the first ten records in a transaction that commits,
// the others in one that aborts.
func (p player) transactions(ctx context.Context) error {
	const in, out = "transactions-in", "transactions-out"
	for _, topic := range []string{in, out} {
		if err := p.create(ctx, topic, 1); err != nil {
			return err
		}
	}
	if err := p.produce(ctx, in, 20); err != nil {
		return err
	}
	if err := p.copyHalves(ctx, in, out); err != nil {
		return err
	}
	if sum, err := p.committed(ctx, "transactions", in); err != nil || sum != 10 {
		return fmt.Errorf("committed offset %d, %v", sum, err)
	}
	if err := p.produce(ctx, out, 1); err != nil { // marks the end for the reader
		return err
	}
	return p.expectCommitted(ctx, out)
}

func (p player) copyHalves(ctx context.Context, in, out string) error {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(p.brokers...),
		kgo.ConsumerGroup("transactions"),
		kgo.ConsumeTopics(in),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.TransactionalID("transactions"),
	)
	if err != nil {
		return err
	}
	defer session.Close()
	for _, try := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		var records []*kgo.Record
		for len(records) < 10 {
			fetches := session.PollRecords(ctx, 10-len(records))
			if err := fetches.Err(); err != nil {
				return err
			}
			records = append(records, fetches.Records()...)
		}
		if err := session.Begin(); err != nil {
			return err
		}
		for _, r := range records {
			session.Produce(ctx, &kgo.Record{Topic: out, Key: r.Key, Value: r.Value}, nil)
		}
		if err := session.Client().Flush(ctx); err != nil {
			return err
		}
		committed, err := session.End(ctx, try)
		if err != nil || committed != bool(try) {
			return fmt.Errorf("a transaction that was to commit (%v) committed (%v), %v", try, committed, err)
		}
	}
	return nil
}

// expectCommitted reads up to the mark and compares.
func (p player) expectCommitted(ctx context.Context, topic string) error {
	reader, err := startMember(p.brokers, "transactions-reader", "", topic)
	if err != nil {
		return err
	}
	defer reader.close()
	got, err := reader.read(ctx, 11)
	if err != nil {
		return err
	}
	for i, r := range got {
		if want := fmt.Sprint("value-", i%10); string(r.Value) != want {
			return fmt.Errorf("record %d read committed is %q, not %q", i, r.Value, want)
		}
	}
	return nil
}
