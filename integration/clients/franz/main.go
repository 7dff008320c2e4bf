// Command franz plays the cases of the client matrix with franz-go's own consumer group (kgo) and admin client (kadm),
// which Millrace itself does not use for its groups.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// limit bounds each case.
const limit = 2 * time.Minute

// player holds what the cases share.
type player struct {
	brokers []string
	client  *kgo.Client // outside of any group
	admin   *kadm.Client
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: franz host:port")
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	p := player{brokers: os.Args[1:], client: client, admin: kadm.NewClient(client)}
	for _, c := range []struct {
		name string
		body func(ctx context.Context) error
	}{
		{"produce-consume", p.produceConsume},
		{"admin", p.administer},
		{"static-bounce", p.staticBounce},
		{"fenced", p.fenced},
		{"batch-removal", p.batchRemoval},
		{"transactions", p.transactions},
	} {
		if err := report(c.name, c.body); err != nil {
			log.Print(err)
			return
		}
	}
}

// report plays a case and prints its line.
func report(name string, body func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	line := map[string]any{"case": name}
	if err := body(ctx); err != nil {
		line["error"] = err.Error()
	} else {
		line["ok"] = true
	}
	return json.NewEncoder(os.Stdout).Encode(line)
}

func (p player) create(ctx context.Context, topic string, partitions int32) error {
	_, err := p.admin.CreateTopic(ctx, partitions, 1, nil, topic)
	return err
}

func (p player) produce(ctx context.Context, topic string, n int) error {
	var records []*kgo.Record
	for i := range n {
		records = append(records, &kgo.Record{Topic: topic, Key: fmt.Append(nil, "key-", i), Value: fmt.Append(nil, "value-", i)})
	}
	return p.client.ProduceSync(ctx, records...).FirstErr()
}

// committed sums the group's offsets of a topic.
func (p player) committed(ctx context.Context, group, topic string) (sum int64, err error) {
	offsets, err := p.admin.FetchOffsets(ctx, group)
	if err != nil {
		return 0, err
	}
	for _, o := range offsets[topic] {
		sum += o.At
	}
	return sum, offsets.Error()
}

func (p player) produceConsume(ctx context.Context) error {
	_, err := p.readAll(ctx, "produce-consume", 4, 100)
	return err
}

// readAll has a member read n records from a new topic and commit them.
func (p player) readAll(ctx context.Context, name string, partitions int32, n int) (d kadm.DescribedGroup, err error) {
	if err := p.create(ctx, name, partitions); err != nil {
		return d, err
	}
	if err := p.produce(ctx, name, n); err != nil {
		return d, err
	}
	m, err := startMember(p.brokers, name, "", name)
	if err != nil {
		return d, err
	}
	defer m.close()
	if _, err := m.read(ctx, n); err != nil {
		return d, err
	}
	if err := m.client.CommitUncommittedOffsets(ctx); err != nil {
		return d, err
	}
	described, err := p.admin.DescribeGroups(ctx, name)
	if err != nil {
		return d, err
	}
	sum, err := p.committed(ctx, name, name)
	if err == nil && sum != int64(n) {
		err = fmt.Errorf("committed %d of %d", sum, n)
	}
	return described[name], err
}

func (p player) administer(ctx context.Context) error {
	const name = "admin"
	d, err := p.readAll(ctx, name, 3, 30)
	if err != nil {
		return err
	}
	if d.State != "Stable" || len(d.Members) != 1 {
		return fmt.Errorf("described as %s with %d members", d.State, len(d.Members))
	}
	topics, err := p.admin.ListTopics(ctx, name)
	if err != nil || len(topics[name].Partitions) != 3 {
		return fmt.Errorf("topics %v, %v", topics, err)
	}
	if groups, err := p.admin.ListGroups(ctx); err != nil || groups[name].ProtocolType != "consumer" {
		return fmt.Errorf("groups %v, %v", groups, err)
	}
	if err := p.changeOffsets(ctx, name); err != nil {
		return err
	}
	if _, err := p.admin.DeleteGroup(ctx, name); err != nil {
		return err
	}
	groups, err := p.admin.ListGroups(ctx)
	if _, listed := groups[name]; err != nil || listed {
		return fmt.Errorf("groups after the deletion: %v, %v", groups, err)
	}
	if _, err := p.admin.DeleteTopic(ctx, name); err != nil {
		return err
	}
	if left, err := p.admin.ListTopics(ctx); err != nil || left.Has(name) {
		return fmt.Errorf("topics after the deletion: %v, %v", left.Names(), err)
	}
	return nil
}

// changeOffsets sets the offset of partition 0 and removes it.
func (p player) changeOffsets(ctx context.Context, name string) error {
	before, err := p.committed(ctx, name, name)
	if err != nil {
		return err
	}
	var set kadm.Offsets
	set.AddOffset(name, 0, 1000, -1)
	if err := p.admin.CommitAllOffsets(ctx, name, set); err != nil {
		return err
	}
	altered, err := p.committed(ctx, name, name)
	if err != nil {
		return err
	}
	var zero kadm.TopicsSet
	zero.Add(name, 0)
	answers, err := p.admin.DeleteOffsets(ctx, name, zero)
	if err != nil || answers.Error() != nil {
		return fmt.Errorf("delete offset: %v, %v", err, answers.Error())
	}
	deleted, err := p.committed(ctx, name, name)
	if err == nil && (altered != deleted+1000 || deleted >= before) {
		err = fmt.Errorf("offsets sum up to %d, altered %d, deleted %d", before, altered, deleted)
	}
	return err
}
