package main

import (
	"fmt"

	"github.com/IBM/sarama"
)

// oldRequests commits and reads offsets as a client of Kafka 0.8 does: by the offset manager in the protocol of 0.8.2
// (OffsetCommit 1), and with version 0 of both requests.
func (p player) oldRequests() error {
	const name = "old-requests"
	if err := p.create(name, 1); err != nil {
		return err
	}
	cfg := config()
	cfg.Version = sarama.V0_8_2_0
	client, err := sarama.NewClient(p.brokers, cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := commitManaged(client, name, 7); err != nil {
		return fmt.Errorf("version 1: %w", err)
	}
	if sum, err := p.committed(name, name, 1); err != nil || sum != 7 {
		return fmt.Errorf("after version 1 a new client sees %d (%v), not 7", sum, err)
	}
	if err := commitFirst(client, name, 9); err != nil {
		return fmt.Errorf("version 0: %w", err)
	}
	if sum, err := p.committed(name, name, 1); err != nil || sum != 9 {
		return fmt.Errorf("after version 0 a new client sees %d (%v), not 9", sum, err)
	}
	return nil
}

// commitManaged has the offset manager commit an offset, and another one find it.
func commitManaged(client sarama.Client, name string, offset int64) error {
	for _, found := range []bool{false, true} {
		manager, err := sarama.NewOffsetManagerFromClient(name, client)
		if err != nil {
			return err
		}
		partition, err := manager.ManagePartition(name, 0)
		if err != nil {
			return err
		}
		if next, _ := partition.NextOffset(); found && next != offset {
			return fmt.Errorf("the offset manager finds %d, not %d", next, offset)
		}
		partition.MarkOffset(offset, "")
		manager.Commit()
		if err := partition.Close(); err != nil {
			return err
		}
		if err := manager.Close(); err != nil {
			return err
		}
	}
	return nil
}

// commitFirst sends the first version of both requests.
func commitFirst(client sarama.Client, name string, offset int64) error {
	coordinator, err := client.Coordinator(name)
	if err != nil {
		return err
	}
	commit := &sarama.OffsetCommitRequest{Version: 0, ConsumerGroup: name}
	commit.AddBlock(name, 0, offset, 0, "")
	committed, err := coordinator.CommitOffset(commit)
	if err != nil {
		return err
	}
	if code := committed.Errors[name][0]; code != sarama.ErrNoError {
		return code
	}
	fetch := &sarama.OffsetFetchRequest{Version: 0, ConsumerGroup: name}
	fetch.AddPartition(name, 0)
	fetched, err := coordinator.FetchOffset(fetch)
	if err != nil {
		return err
	}
	if block := fetched.GetBlock(name, 0); block == nil || block.Err != sarama.ErrNoError || block.Offset != offset {
		return fmt.Errorf("OffsetFetch finds %+v, not %d", block, offset)
	}
	return nil
}
