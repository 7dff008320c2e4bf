// Command sarama plays the cases of the client matrix with github.com/IBM/sarama. It is a module of its own, so that
// nothing else depends on that client.
package main

import (
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/IBM/sarama"
)

// player holds what the cases share.
type player struct {
	brokers []string
	admin   sarama.ClusterAdmin
}

func main() {
	if len(os.Args) != 2 && !(len(os.Args) == 3 && os.Args[2] == "old-requests") {
		log.Fatal("usage: sarama host:port [old-requests]")
	}
	p := player{brokers: os.Args[1:2]}
	var err error
	if p.admin, err = sarama.NewClusterAdmin(p.brokers, config()); err != nil {
		log.Fatal(err)
	}
	cases := []namedCase{
		{"produce-consume", p.produceConsume},
		{"admin", p.administer},
		{"static-bounce", p.staticBounce},
		{"fenced", p.fenced},
		{"batch-removal", p.batchRemoval},
		{"transactions", p.transactions},
	}
	if len(os.Args) == 3 {
		cases = []namedCase{{"old-requests", p.oldRequests}}
	}
	if err := play(cases); err != nil {
		log.Fatal(err)
	}
}

// config is what producers, consumers and the admin client have in common.
func config() *sarama.Config {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.MaxVersion
	cfg.Producer.Return.Successes = true
	return cfg
}

func (p player) create(topic string, partitions int32) error {
	return p.admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false)
}

func (p player) produce(topic string, n int) error {
	producer, err := sarama.NewSyncProducer(p.brokers, config())
	if err != nil {
		return err
	}
	for i := range n {
		if _, _, err := producer.SendMessage(record(topic, fmt.Sprint("key-", i), fmt.Sprint("value-", i))); err != nil {
			return err
		}
	}
	return producer.Close()
}

func record(topic, key, value string) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(key), Value: sarama.StringEncoder(value)}
}

// committed sums the group's offsets of a topic.
func (p player) committed(group, topic string, partitions int32) (sum int64, err error) {
	asked := map[string][]int32{topic: nil}
	for i := range partitions {
		asked[topic] = append(asked[topic], i)
	}
	offsets, err := p.admin.ListConsumerGroupOffsets(group, asked)
	if err != nil {
		return 0, err
	}
	for _, block := range offsets.Blocks[topic] {
		sum += max(block.Offset, 0)
	}
	return sum, nil
}

func (p player) produceConsume() error {
	_, err := p.readAll("produce-consume", 4, 100)
	return err
}

// readAll has a member read n records from a new topic and commit them.
func (p player) readAll(name string, partitions int32, n int) (d *sarama.GroupDescription, err error) {
	if err := p.create(name, partitions); err != nil {
		return nil, err
	}
	if err := p.produce(name, n); err != nil {
		return nil, err
	}
	m, err := startMember(p.brokers, name, "", name)
	if err != nil {
		return nil, err
	}
	if _, err := m.read(n); err != nil {
		return nil, err
	}
	described, err := p.admin.DescribeConsumerGroups([]string{name})
	if err != nil {
		return nil, err
	}
	if err := m.close(); err != nil {
		return nil, err
	}
	sum, err := p.committed(name, name, partitions)
	if err == nil && sum != int64(n) {
		err = fmt.Errorf("committed %d of %d", sum, n)
	}
	return described[0], err
}

func (p player) administer() error {
	const name = "admin"
	d, err := p.readAll(name, 3, 30)
	if err != nil {
		return err
	}
	if d.State != "Stable" || len(d.Members) != 1 {
		return fmt.Errorf("described as %s with %d members", d.State, len(d.Members))
	}
	topics, err := p.admin.DescribeTopics([]string{name})
	if err != nil || len(topics) != 1 || len(topics[0].Partitions) != 3 {
		return fmt.Errorf("topics %v, %v", topics, err)
	}
	if groups, err := p.admin.ListConsumerGroups(); err != nil || groups[name] != "consumer" {
		return fmt.Errorf("groups %v, %v", groups, err)
	}
	if err := p.changeOffsets(name); err != nil {
		return err
	}
	if err := p.admin.DeleteConsumerGroup(name); err != nil {
		return err
	}
	if groups, err := p.admin.ListConsumerGroups(); err != nil || groups[name] != "" {
		return fmt.Errorf("groups after the deletion: %v, %v", groups, err)
	}
	if err := p.admin.DeleteTopic(name); err != nil {
		return err
	}
	if left, err := p.admin.ListTopics(); err != nil || left[name].NumPartitions != 0 {
		return fmt.Errorf("topics after the deletion: %v, %v", left, err)
	}
	return nil
}

// changeOffsets sets the offset of partition 0 and removes it.
func (p player) changeOffsets(name string) error {
	before, err := p.committed(name, name, 3)
	if err != nil {
		return err
	}
	_, err = p.admin.AlterConsumerGroupOffsets(name, map[string]map[int32]sarama.OffsetAndMetadata{name: {0: {Offset: 1000, LeaderEpoch: -1}}}, nil)
	if err != nil {
		return err
	}
	altered, err := p.committed(name, name, 3)
	if err != nil {
		return err
	}
	if err := p.admin.DeleteConsumerGroupOffset(name, name, 0); err != nil {
		return err
	}
	deleted, err := p.committed(name, name, 3)
	if err == nil && (altered != deleted+1000 || deleted >= before) {
		err = fmt.Errorf("offsets sum up to %d, altered %d, deleted %d", before, altered, deleted)
	}
	return err
}

func (p player) staticBounce() error {
	const name = "static-bounce"
	if err := p.create(name, 4); err != nil {
		return err
	}
	members, err := startPair(p.brokers, name)
	if err != nil {
		return err
	}
	for _, ids := range [][2]string{{"a", "b"}, {"b", "a"}} {
		id, other := ids[0], members[ids[1]]
		mine, others := members[id].now(), other.now()
		if err := members[id].close(); err != nil {
			return err
		}
		again, err := startMember(p.brokers, name, id, name)
		if err != nil {
			return err
		}
		members[id] = again
		if err := until(id+" to be back", func() bool { return len(again.now().claims) > 0 }, again, other); err != nil {
			return err
		}
		back, still := again.now(), other.now()
		if !slices.Equal(back.claims, mine.claims) || back.generation != mine.generation || still.sessions != others.sessions {
			return fmt.Errorf("%s was %+v and is %+v; the other one was %+v and is %+v", id, mine, back, others, still)
		}
	}
	return closeAll(members)
}

func closeAll(members map[string]*member) error {
	for id, m := range members {
		if err := m.close(); err != nil {
			return fmt.Errorf("close %s: %w", id, err)
		}
	}
	return nil
}
