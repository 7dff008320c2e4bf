package main

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

func (p player) fenced() error {
	const name = "fenced"
	if err := p.create(name, 2); err != nil {
		return err
	}
	first, err := startMember(p.brokers, name, "a", name)
	if err != nil {
		return err
	}
	if err := until("the first to own the topic", func() bool { return len(first.now().claims) == 2 }, first); err != nil {
		return err
	}
	second, err := startMember(p.brokers, name, "a", name)
	if err != nil {
		return err
	}
	if err := until("the second to own the topic", func() bool { return len(second.now().claims) == 2 }, second); err != nil {
		return err
	}
	if err := until("the first to be fenced", func() bool { return first.now().err != nil }, second); err != nil {
		return err
	}
	if err := first.now().err; !errors.Is(err, sarama.ErrFencedInstancedId) {
		return fmt.Errorf("the first was not fenced but: %w", err)
	}
	if len(second.now().claims) != 2 {
		return errors.New("the second lost the topic")
	}
	return errors.Join(first.close(), second.close())
}

func (p player) batchRemoval() error {
	const name = "batch-removal"
	if err := p.create(name, 4); err != nil {
		return err
	}
	members, err := startPair(p.brokers, name)
	if err != nil {
		return err
	}
	if err := closeAll(members); err != nil {
		return err
	}
	if err := p.expectMembers(name, "Stable", 2); err != nil {
		return err
	}
	resp, err := p.admin.RemoveMemberFromConsumerGroup(name, []string{"a", "b"})
	if err != nil {
		return err
	}
	if resp.Err != sarama.ErrNoError || len(resp.Members) != 2 || resp.Members[0].Err != sarama.ErrNoError || resp.Members[1].Err != sarama.ErrNoError {
		return fmt.Errorf("removal answered %+v", resp)
	}
	return p.expectMembers(name, "Empty", 0)
}

func (p player) expectMembers(group, state string, n int) error {
	d, err := p.admin.DescribeConsumerGroups([]string{group})
	if err != nil {
		return err
	}
	if len(d) != 1 || d[0].State != state || len(d[0].Members) != n {
		return fmt.Errorf("group is %+v, expected %s with %d members", d[0], state, n)
	}
	return nil
}
