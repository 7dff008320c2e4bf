package codec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ProtocolType and ProtocolName are what our members offer in JoinGroup. The type is Kafka's own, so that its tools
// read the envelope; the name is ours, so that members of another kind cannot join by mistake.
const (
	ProtocolType = "consumer"
	ProtocolName = "millrace"
)

// A TopicPartition is a source partition of a task.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// EncodeMember wraps s as JoinGroup's protocol metadata: Kafka's ConsumerProtocol subscription with s as user data.
// topics are the topics the application reads, owned the source partitions of the tasks that the member owns.
func EncodeMember(topics []string, owned []TopicPartition, s *Subscription) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Version = 2 // 1 added owned partitions, 2 the generation they belong to
	m.Topics = slices.Sorted(slices.Values(topics))
	m.Generation = s.Generation
	m.UserData = s.Encode()
	for topic, partitions := range byTopic(owned) {
		t := kmsg.NewConsumerMemberMetadataOwnedPartition()
		t.Topic, t.Partitions = topic, partitions
		m.OwnedPartitions = append(m.OwnedPartitions, t)
	}
	slices.SortFunc(m.OwnedPartitions, func(a, b kmsg.ConsumerMemberMetadataOwnedPartition) int {
		return cmp.Compare(a.Topic, b.Topic)
	})
	return m.AppendTo(nil)
}

// DecodeMember reads back what [EncodeMember] wrote.
func DecodeMember(metadata []byte) (topics []string, s Subscription, err error) {
	var m kmsg.ConsumerMemberMetadata
	if err := m.ReadFrom(metadata); err != nil {
		return nil, Subscription{}, fmt.Errorf("member metadata is no ConsumerProtocol subscription: %w", err)
	}
	s, err = DecodeSubscription(m.UserData)
	return m.Topics, s, err
}

// EncodeGrant wraps a as SyncGroup's assignment for one member: Kafka's ConsumerProtocol assignment with a as user
// data. sources are the source partitions of a's active tasks.
func EncodeGrant(sources []TopicPartition, a *Assignment) []byte {
	m := kmsg.NewConsumerMemberAssignment()
	m.UserData = a.Encode()
	for topic, partitions := range byTopic(sources) {
		t := kmsg.NewConsumerMemberAssignmentTopic()
		t.Topic, t.Partitions = topic, partitions
		m.Topics = append(m.Topics, t)
	}
	slices.SortFunc(m.Topics, func(a, b kmsg.ConsumerMemberAssignmentTopic) int { return cmp.Compare(a.Topic, b.Topic) })
	return m.AppendTo(nil)
}

// DecodeGrant reads back what [EncodeGrant] wrote. No bytes at all are an empty assignment, which is what the
// coordinator gives to a member that the leader left out.
func DecodeGrant(assignment []byte) (sources []TopicPartition, a Assignment, err error) {
	if len(assignment) == 0 {
		a, err := DecodeAssignment(nil)
		return nil, a, err
	}
	var m kmsg.ConsumerMemberAssignment
	if err := m.ReadFrom(assignment); err != nil {
		return nil, Assignment{}, fmt.Errorf("member assignment is no ConsumerProtocol assignment: %w", err)
	}
	for _, t := range m.Topics {
		for _, p := range t.Partitions {
			sources = append(sources, TopicPartition{Topic: t.Topic, Partition: p})
		}
	}
	a, err = DecodeAssignment(m.UserData)
	return sources, a, err
}

// byTopic groups partitions under their topic, each list sorted and without repeats: tasks may share a partition.
func byTopic(tps []TopicPartition) map[string][]int32 {
	topics := map[string][]int32{}
	for _, tp := range tps {
		topics[tp.Topic] = append(topics[tp.Topic], tp.Partition)
	}
	for topic := range maps.Keys(topics) {
		slices.Sort(topics[topic])
		topics[topic] = slices.Compact(topics[topic])
	}
	return topics
}
