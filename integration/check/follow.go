package check

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Follower follows a sink of counts while an application writes it, so that a test knows when its input is
// counted: the counts of all keys add up to the records counted. Its methods may be called from any goroutine.
type Follower struct {
	client *kgo.Client
	done   chan struct{}

	mu      sync.Mutex
	last    map[string]uint64
	sum     uint64
	changed chan struct{} // closed and replaced when sum has moved
	err     error
}

// Follow starts to follow a topic from its start.
func Follow(topic string, opts ...kgo.Opt) (*Follower, error) {
	client, err := kgo.NewClient(append(opts, kgo.ConsumeTopics(topic), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		return nil, err
	}
	f := &Follower{client: client, done: make(chan struct{}), last: map[string]uint64{}, changed: make(chan struct{})}
	go f.run()
	return f, nil
}

func (f *Follower) run() {
	defer close(f.done)
	for {
		fetches := f.client.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		f.add(fetches)
	}
}

func (f *Follower) add(fetches kgo.Fetches) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fetches.EachError(func(topic string, p int32, err error) { // the client goes on by itself
		f.err = fmt.Errorf("follow %s/%d: %w", topic, p, err)
	})
	for r := range fetches.RecordsAll() {
		n := uint64(0)
		if len(r.Value) == 8 {
			n = binary.BigEndian.Uint64(r.Value)
		}
		f.sum += n - f.last[string(r.Key)]
		f.last[string(r.Key)] = n
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// Sum is the number of records counted so far.
func (f *Follower) Sum() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sum
}

// Await waits until at least n records are counted. Where records may be counted twice, after a failure under
// at-least-once, that does not mean that all are: use AwaitAll.
func (f *Follower) Await(ctx context.Context, n uint64) error {
	return f.await(ctx, func() string {
		if f.sum >= n {
			return ""
		}
		return fmt.Sprintf("%d of %d records are counted", f.sum, n)
	})
}

// AwaitAll waits until every key has at least the count that is wanted.
func (f *Follower) AwaitAll(ctx context.Context, want map[string]uint64) error {
	return f.await(ctx, func() string {
		for key, n := range want {
			if f.last[key] < n {
				return fmt.Sprintf("%q is counted %d of %d times, all keys %d times", key, f.last[key], n, f.sum)
			}
		}
		return ""
	})
}

// await waits until missing, which is called with the lock held, finds nothing.
func (f *Follower) await(ctx context.Context, missing func() string) error {
	for {
		f.mu.Lock()
		text, changed, err := missing(), f.changed, f.err
		f.mu.Unlock()
		if text == "" {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", text, errors.Join(context.Cause(ctx), err))
		}
	}
}

// Close ends the following.
func (f *Follower) Close() {
	f.client.Close()
	<-f.done
}
