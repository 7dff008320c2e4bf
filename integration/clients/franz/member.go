package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A member is a consumer in a group that a goroutine polls without end.
type member struct {
	client *kgo.Client
	done   chan struct{}

	mu      sync.Mutex
	owned   map[int32]bool
	changes int // assignments and revocations that held partitions
	records []*kgo.Record
	err     error // the first that polling met
}

// changed wakes the one goroutine that waits.
var changed = make(chan struct{}, 1)

func startMember(brokers []string, group, instance, topic string, opts ...kgo.Opt) (*member, error) {
	m := &member{done: make(chan struct{}), owned: map[int32]bool{}}
	opts = append(opts,
		kgo.SeedBrokers(brokers...),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(25*time.Minute),
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { m.own(p[topic], true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { m.own(p[topic], false) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { m.own(p[topic], false) }),
	)
	if instance != "" {
		opts = append(opts, kgo.InstanceID(instance))
	}
	var err error
	if m.client, err = kgo.NewClient(opts...); err != nil {
		return nil, err
	}
	go m.run()
	return m, nil
}

func (m *member) run() {
	defer close(m.done)
	for {
		fetches := m.client.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		m.update(func() {
			m.records = append(m.records, fetches.Records()...)
			if m.err == nil {
				m.err = fetches.Err()
			}
		})
	}
}

func (m *member) update(f func()) {
	m.mu.Lock()
	f()
	m.mu.Unlock()
	select {
	case changed <- struct{}{}:
	default:
	}
}

func (m *member) own(partitions []int32, gained bool) {
	m.update(func() {
		for _, p := range partitions {
			m.owned[p] = gained
		}
		if len(partitions) > 0 {
			m.changes++
		}
	})
}

// picture is what a member is at one moment.
type picture struct {
	owned      []int32
	changes    int
	generation int32
	records    []*kgo.Record
	err        error
}

func (m *member) now() picture {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := picture{changes: m.changes, records: slices.Clone(m.records), err: m.err}
	for partition, owned := range m.owned {
		if owned {
			p.owned = append(p.owned, partition)
		}
	}
	slices.Sort(p.owned)
	_, p.generation = m.client.GroupMetadata()
	return p
}

// close ends the member; a static one stays in its group.
func (m *member) close() {
	m.client.Close()
	<-m.done
}

// read waits for n records.
func (m *member) read(ctx context.Context, n int) ([]*kgo.Record, error) {
	err := until(ctx, fmt.Sprint(n, " records"), func() bool { return len(m.now().records) >= n }, m)
	return m.now().records, err
}

// until waits for a change that makes the condition true. It fails when one of the members does.
func until(ctx context.Context, what string, holds func() bool, members ...*member) error {
	for !holds() {
		for _, m := range members {
			if err := m.now().err; err != nil {
				return fmt.Errorf("while waiting for %s: %w", what, err)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errors.New("waited in vain for " + what)
		}
	}
	return nil
}
