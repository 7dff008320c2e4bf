package coordinator

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// onOffsetDelete serves OffsetDelete (version 0). The offsets of topics that a live consumer group subscribes to stay.
func (m *Machine) onOffsetDelete(r Request, q *kmsg.OffsetDeleteRequest) {
	resp := kmsg.NewPtrOffsetDeleteResponse()
	resp.Version = q.Version
	g, err := m.offsetDeleter(q.Group)
	if err != nil {
		resp.ErrorCode = err.Code
		m.reply(r.ID, resp)
		return
	}
	wanted := make(map[topicPartition]bool)
	for _, t := range q.Topics {
		topic := kmsg.NewOffsetDeleteResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			e := kmsg.NewOffsetDeleteResponseTopicPartition()
			e.Partition = p.Partition
			tp := topicPartition{t.Topic, p.Partition}
			switch {
			case !m.knows(tp):
				e.ErrorCode = kerr.UnknownTopicOrPartition.Code
			case g.subscribes(t.Topic):
				e.ErrorCode = kerr.GroupSubscribedToTopic.Code
			default:
				wanted[tp] = true
			}
			topic.Partitions = append(topic.Partitions, e)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	m.deleteOffsets(g, func(tp topicPartition) bool { return wanted[tp] }, &offsetDeleteStored{r.ID, resp})
}

func (m *Machine) offsetDeleter(id string) (*group, *kerr.Error) {
	if id == "" {
		return nil, kerr.InvalidGroupID
	}
	g, err := m.existing(id)
	if err == nil && g.state != empty && g.protocolType != consumerProtocol {
		err = kerr.NonEmptyGroup
	}
	return g, err
}

// offsetDeleteStored waits for the tombstones.
type offsetDeleteStored struct {
	request uint64
	resp    *kmsg.OffsetDeleteResponse
}

func (c *offsetDeleteStored) appended(m *Machine, err *kerr.Error) {
	if err != nil {
		c.resp.ErrorCode, c.resp.Topics = code(storeError(err)), nil
	}
	m.reply(c.request, c.resp)
}

// consumerProtocol is the protocol type of consumer groups, whose subscriptions the coordinator can read.
const consumerProtocol = "consumer"

// subscribes reports whether the group may read a topic: a member named it when the generation began, or the members
// cannot be understood. As in Kafka, who has left since still counts until the next generation.
func (g *group) subscribes(topic string) bool {
	return g.protocolType == consumerProtocol && (!g.topicsKnown || slices.Contains(g.topics, topic))
}

// readTopics notes what the members of a generation subscribe to. That is not known before the first generation, or if
// a member's metadata is not the consumer protocol's.
func (g *group) readTopics() {
	g.topics, g.topicsKnown = nil, false
	if g.protocolType != consumerProtocol {
		return
	}
	var topics []string
	for _, mb := range g.members {
		var md kmsg.ConsumerMemberMetadata
		if err := md.ReadFrom(mb.metadata(g.protocol)); err != nil {
			return
		}
		topics = append(topics, md.Topics...)
	}
	slices.Sort(topics)
	g.topics, g.topicsKnown = slices.Compact(topics), true
}
