package main

import (
	"fmt"

	"github.com/IBM/sarama"
)

func (p player) transactions() error {
	const in, out = "transactions-in", "transactions-out"
	for _, topic := range []string{in, out} {
		if err := p.create(topic, 1); err != nil {
			return err
		}
	}
	if err := p.produce(in, 20); err != nil {
		return err
	}
	m, err := startMember(p.brokers, "transactions", "", in)
	if err != nil {
		return err
	}
	records, err := m.read(20)
	if err != nil {
		return err
	}
	if err := p.copyHalves(records, out); err != nil {
		return err
	}
	if err := m.close(); err != nil {
		return err
	}
	if sum, err := p.committed("transactions", in, 1); err != nil || sum != 10 {
		return fmt.Errorf("committed offset %d, %v", sum, err)
	}
	if err := p.produce(out, 1); err != nil { // marks the end for the reader
		return err
	}
	return p.expectCommitted(out, records[:10])
}

// copyHalves copies the first half in a committed transaction and the second in an aborted one.
func (p player) copyHalves(records []*sarama.ConsumerMessage, out string) error {
	cfg := config()
	cfg.Producer.Transaction.ID = "transactions"
	cfg.Producer.Idempotent, cfg.Producer.RequiredAcks, cfg.Net.MaxOpenRequests = true, sarama.WaitForAll, 1
	producer, err := sarama.NewSyncProducer(p.brokers, cfg)
	if err != nil {
		return err
	}
	for _, half := range []int{0, 10} {
		if err := producer.BeginTxn(); err != nil {
			return err
		}
		for _, r := range records[half : half+10] {
			if _, _, err := producer.SendMessage(record(out, string(r.Key), string(r.Value))); err != nil {
				return err
			}
			if err := producer.AddMessageToTxn(r, "transactions", nil); err != nil {
				return err
			}
		}
		end := producer.CommitTxn
		if half > 0 {
			end = producer.AbortTxn
		}
		if err := end(); err != nil {
			return err
		}
	}
	return producer.Close()
}

// expectCommitted reads up to the mark and compares.
func (p player) expectCommitted(topic string, want []*sarama.ConsumerMessage) error {
	reader, err := startMember(p.brokers, "transactions-reader", "", topic)
	if err != nil {
		return err
	}
	got, err := reader.read(len(want) + 1)
	if err != nil {
		return err
	}
	for i, r := range want {
		if string(got[i].Value) != string(r.Value) {
			return fmt.Errorf("record %d read committed is %q, not %q", i, got[i].Value, r.Value)
		}
	}
	if last := string(got[len(want)].Value); last != "value-0" {
		return fmt.Errorf("read %q behind the committed records", last)
	}
	return reader.close()
}
