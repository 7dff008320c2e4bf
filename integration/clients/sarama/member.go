package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// A member is a consumer group member that keeps what it has read and tells what it owns.
type member struct {
	group  sarama.ConsumerGroup
	cancel context.CancelFunc
	done   chan struct{}

	mu         sync.Mutex
	claims     []int32
	generation int32
	sessions   int
	records    []*sarama.ConsumerMessage
	err        error // how Consume ended
}

// changed wakes the one goroutine that waits.
var changed = make(chan struct{}, 1)

func startMember(brokers []string, group, instance, topic string) (*member, error) {
	cfg := config()
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	cfg.Consumer.Offsets.AutoCommit.Enable = false
	cfg.Consumer.IsolationLevel = sarama.ReadCommitted
	cfg.Consumer.Group.Session.Timeout = 25 * time.Minute
	cfg.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	cfg.Consumer.Group.InstanceId = instance
	cfg.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	g, err := sarama.NewConsumerGroup(brokers, group, cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{group: g, cancel: cancel, done: make(chan struct{})}
	go m.run(ctx, topic)
	return m, nil
}

func (m *member) run(ctx context.Context, topic string) {
	defer close(m.done)
	for ctx.Err() == nil {
		if err := m.group.Consume(ctx, []string{topic}, m); err != nil {
			m.update(func() { m.err = err })
			return
		}
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

// Setup is called when the member has its partitions.
func (m *member) Setup(s sarama.ConsumerGroupSession) error {
	m.update(func() {
		m.claims, m.generation = nil, s.GenerationID()
		m.sessions++
		for _, partitions := range s.Claims() {
			m.claims = append(m.claims, partitions...)
		}
		slices.Sort(m.claims)
	})
	return nil
}

// Cleanup is called when it gives them up.
func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.update(func() { m.claims = nil })
	return nil
}

// ConsumeClaim reads one partition.
func (m *member) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for r := range claim.Messages() {
		s.MarkMessage(r, "")
		if r.Topic == "produce-consume" || r.Topic == "admin" {
			s.Commit()
		}
		m.update(func() { m.records = append(m.records, r) })
	}
	return nil
}

// picture is what a member is at one moment.
type picture struct {
	claims     []int32
	generation int32
	sessions   int
	records    []*sarama.ConsumerMessage
	err        error
}

func (m *member) now() picture {
	m.mu.Lock()
	defer m.mu.Unlock()
	return picture{slices.Clone(m.claims), m.generation, m.sessions, slices.Clone(m.records), m.err}
}

// close ends the member; a static one stays in its group.
func (m *member) close() error {
	m.cancel()
	<-m.done
	return m.group.Close()
}

// read waits for n records.
func (m *member) read(n int) ([]*sarama.ConsumerMessage, error) {
	err := until(fmt.Sprint(n, " records"), func() bool { return len(m.now().records) >= n }, m)
	return m.now().records, err
}

// until waits for a change that makes the condition true. It fails when one of the members does.
func until(what string, holds func() bool, members ...*member) error {
	late := time.After(limit)
	for !holds() {
		for _, m := range members {
			if err := m.now().err; err != nil {
				return fmt.Errorf("while waiting for %s: %w", what, err)
			}
		}
		select {
		case <-changed:
		case <-late:
			return errors.New("waited in vain for " + what)
		}
	}
	return nil
}

// startPair starts the static members a and b and waits until they share the topic's four partitions.
func startPair(brokers []string, name string) (map[string]*member, error) {
	members := map[string]*member{}
	for _, instance := range []string{"a", "b"} {
		m, err := startMember(brokers, name, instance, name)
		if err != nil {
			return members, err
		}
		members[instance] = m
	}
	shared := func() bool {
		a, b := members["a"].now(), members["b"].now()
		return len(a.claims) == 2 && len(b.claims) == 2 && a.generation == b.generation
	}
	return members, until("two partitions each", shared, slices.Collect(maps.Values(members))...)
}
