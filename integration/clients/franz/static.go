package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// rangePlan is for groups whose leader restarts. A static leader that comes back is told to keep the group's plan; kgo
// makes a plan of its own nevertheless, and asks for a rebalance when the two differ. A range plan is the same each
// time. The default, cooperative-sticky, may differ: it starts from what the members owned when they joined last.
var rangePlan = kgo.Balancers(kgo.RangeBalancer())

// startPair starts the static members a and b and waits until they share the topic's four partitions.
func (p player) startPair(ctx context.Context, name string) (map[string]*member, error) {
	members := map[string]*member{}
	for _, instance := range []string{"a", "b"} {
		m, err := startMember(p.brokers, name, instance, name, rangePlan)
		if err != nil {
			return members, err
		}
		members[instance] = m
	}
	a, b := members["a"], members["b"]
	return members, until(ctx, "two partitions each", func() bool {
		a, b := a.now(), b.now()
		return len(a.owned) == 2 && len(b.owned) == 2 && a.generation == b.generation
	}, a, b)
}

func closeAll(members map[string]*member) {
	for _, m := range members {
		m.close()
	}
}

func (p player) staticBounce(ctx context.Context) error {
	const name = "static-bounce"
	if err := p.create(ctx, name, 4); err != nil {
		return err
	}
	members, err := p.startPair(ctx, name)
	defer closeAll(members)
	if err != nil {
		return err
	}
	for _, ids := range [][2]string{{"a", "b"}, {"b", "a"}} {
		id, other := ids[0], members[ids[1]]
		mine, others := members[id].now(), other.now()
		members[id].close()
		again, err := startMember(p.brokers, name, id, name, rangePlan)
		if err != nil {
			return err
		}
		members[id] = again
		if err := until(ctx, id+" to be back", func() bool { return len(again.now().owned) > 0 }, again, other); err != nil {
			return err
		}
		back, still := again.now(), other.now()
		if !slices.Equal(back.owned, mine.owned) || back.generation != mine.generation || still.changes != others.changes {
			return fmt.Errorf("%s was %+v and is %+v; the other one was %+v and is %+v", id, mine, back, others, still)
		}
	}
	return nil
}

func (p player) fenced(ctx context.Context) error {
	const name = "fenced"
	if err := p.create(ctx, name, 2); err != nil {
		return err
	}
	first, err := startMember(p.brokers, name, "a", name)
	if err != nil {
		return err
	}
	defer first.close()
	if err := until(ctx, "the first to own the topic", func() bool { return len(first.now().owned) == 2 }, first); err != nil {
		return err
	}
	second, err := startMember(p.brokers, name, "a", name)
	if err != nil {
		return err
	}
	defer second.close()
	if err := until(ctx, "the second to own the topic", func() bool { return len(second.now().owned) == 2 }, second); err != nil {
		return err
	}
	if err := until(ctx, "the first to be fenced", func() bool { return first.now().err != nil }, second); err != nil {
		return err
	}
	if err := first.now().err; !errors.Is(err, kerr.FencedInstanceID) {
		return fmt.Errorf("the first was not fenced but: %w", err)
	}
	if len(second.now().owned) != 2 {
		return errors.New("the second lost the topic")
	}
	return nil
}

func (p player) batchRemoval(ctx context.Context) error {
	const name = "batch-removal"
	if err := p.create(ctx, name, 4); err != nil {
		return err
	}
	members, err := p.startPair(ctx, name)
	closeAll(members)
	if err != nil {
		return err
	}
	if err := p.expectMembers(ctx, name, "Stable", 2); err != nil {
		return err
	}
	left, err := p.admin.LeaveGroup(ctx, kadm.LeaveGroup(name).InstanceIDs("a", "b"))
	if err != nil {
		return err
	}
	if err := left.Error(); err != nil || len(left) != 2 {
		return fmt.Errorf("removal answered %+v, %v", left, err)
	}
	return p.expectMembers(ctx, name, "Empty", 0)
}

func (p player) expectMembers(ctx context.Context, group, state string, n int) error {
	described, err := p.admin.DescribeGroups(ctx, group)
	if err != nil {
		return err
	}
	if d := described[group]; d.State != state || len(d.Members) != n {
		return fmt.Errorf("group is %s with %d members, expected %s with %d", d.State, len(d.Members), state, n)
	}
	return nil
}
