package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A byHand is what a hand-written loop does with records. One goroutine calls it.
type byHand interface {
	// partition produces what follows from the records fetched from one partition.
	partition(produce func(*kgo.Record), records []*kgo.Record)
	// commit produces what has to be there before the positions are committed.
	commit(produce func(*kgo.Record))
}

// runByHand runs as many loops as there are threads until the watch ends.
func runByHand(ctx context.Context, o options, m *meter, work func() byHand) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan error, o.threads)
	for n := range o.threads {
		l := &loop{o: o, m: m, work: work(), number: n}
		go func() {
			err := l.run(ctx)
			if err != nil {
				stop(err) // the watch must not wait for records that nobody copies
			}
			ended <- err
		}()
	}
	err := m.watch(ctx)
	stop(nil)
	for range o.threads {
		err = errors.Join(err, <-ended)
	}
	if err == nil {
		m.emit(field{"ev", "closed"}, field{"clean", true})
	}
	return err
}

// loop is consume, process, produce and commit at an interval, as one would write it on the client.
type loop struct {
	o       options
	m       *meter
	work    byHand
	number  int
	client  *kgo.Client
	session *kgo.GroupTransactSession // exactly-once only
	failed  failure
}

func (l *loop) run(ctx context.Context) error {
	if err := l.connect(); err != nil {
		return err
	}
	defer l.close()
	produce := l.producer()
	next, open := time.Now().Add(l.o.commit), false
	for ctx.Err() == nil {
		fetches := l.poll(ctx)
		if err := firstError(ctx, fetches); err != nil {
			return err
		}
		if !fetches.Empty() && l.session != nil && !open {
			if err := l.session.Begin(); err != nil {
				return fmt.Errorf("begin transaction: %w", err)
			}
			open = true
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if len(p.Records) > 0 {
				l.m.in.add(len(p.Records))
				l.work.partition(produce, p.Records)
				l.m.out.add(len(p.Records))
			}
		})
		if !time.Now().Before(next) {
			if err := l.commit(produce, open); err != nil {
				return err
			}
			next, open = time.Now().Add(l.o.commit), false
		}
	}
	return l.commit(produce, open)
}

func (l *loop) connect() error {
	opts := append(l.o.clientOptions(), l.o.producerOptions()...)
	opts = append(opts, l.o.consumerOptions()...)
	opts = append(opts, kgo.ConsumerGroup(l.o.appID), kgo.ConsumeTopics(l.o.in), kgo.DisableAutoCommit(),
		kgo.SessionTimeout(l.o.session), kgo.RecordPartitioner(explicitOrHashed()))
	var err error
	if l.o.exactlyOnce() {
		opts = append(opts, kgo.TransactionalID(fmt.Sprintf("%s-%d", l.o.appID, l.number)))
		l.session, err = kgo.NewGroupTransactSession(opts...)
		if err == nil {
			l.client = l.session.Client()
		}
	} else {
		l.client, err = kgo.NewClient(opts...)
	}
	return err
}

func (l *loop) close() {
	if l.session != nil {
		l.session.Close()
		return
	}
	l.client.Close()
}

func (l *loop) poll(ctx context.Context) kgo.Fetches {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if l.session != nil {
		return l.session.PollFetches(ctx)
	}
	return l.client.PollFetches(ctx)
}

func (l *loop) producer() func(*kgo.Record) {
	promise, background := l.failed.promise, context.Background()
	return func(r *kgo.Record) { l.client.Produce(background, r, promise) }
}

// commit ends an interval: everything produced is acknowledged before the positions are committed.
func (l *loop) commit(produce func(*kgo.Record), open bool) error {
	l.work.commit(produce)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if l.session != nil {
		if !open {
			return nil
		}
		committed, err := l.session.End(ctx, kgo.TryCommit)
		if err == nil && !committed {
			err = errors.New("aborted by a rebalance")
		}
		return errors.Join(err, l.failed.err())
	}
	if err := l.client.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	if err := l.failed.err(); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	return l.client.CommitUncommittedOffsets(ctx)
}

// firstError is the first real error of a poll; that the wait was over is none.
func firstError(ctx context.Context, fetches kgo.Fetches) error {
	for _, e := range fetches.Errors() {
		if ctx.Err() == nil && !errors.Is(e.Err, context.DeadlineExceeded) {
			return fmt.Errorf("fetch %s/%d: %w", e.Topic, e.Partition, e.Err)
		}
	}
	return nil
}
