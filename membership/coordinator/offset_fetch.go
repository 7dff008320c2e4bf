package coordinator

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// onOffsetFetch serves OffsetFetch (versions 0 to 10): one group up to version 7, several from 8 on, by topic id from
// 10 on. With require_stable, a partition that an open transaction may still change is UNSTABLE_OFFSET_COMMIT.
func (m *Machine) onOffsetFetch(r Request, q *kmsg.OffsetFetchRequest) {
	resp := kmsg.NewPtrOffsetFetchResponse()
	resp.Version = q.Version
	if q.Version >= 8 {
		for _, g := range q.Groups {
			resp.Groups = append(resp.Groups, m.fetchGroup(g, q.RequireStable, q.Version >= 10))
		}
		m.reply(r.ID, resp)
		return
	}
	answer := m.fetchGroup(singleGroup(q), q.RequireStable, false)
	resp.ErrorCode = answer.ErrorCode
	for _, t := range answer.Topics {
		topic := kmsg.NewOffsetFetchResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			e := kmsg.NewOffsetFetchResponseTopicPartition()
			e.Partition, e.Offset, e.LeaderEpoch, e.Metadata, e.ErrorCode = p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode
			topic.Partitions = append(topic.Partitions, e)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	if q.Version < 2 && answer.ErrorCode != 0 {
		resp.Topics = failedTopics(q, answer.ErrorCode)
	}
	m.reply(r.ID, resp)
}

// singleGroup is a request of a version before 8 in the form of the later ones.
func singleGroup(q *kmsg.OffsetFetchRequest) kmsg.OffsetFetchRequestGroup {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = q.Group
	if q.Topics == nil {
		return g // every topic
	}
	g.Topics = make([]kmsg.OffsetFetchRequestGroupTopic, 0, len(q.Topics))
	for _, t := range q.Topics {
		topic := kmsg.NewOffsetFetchRequestGroupTopic()
		topic.Topic, topic.Partitions = t.Topic, t.Partitions
		g.Topics = append(g.Topics, topic)
	}
	return g
}

// failedTopics repeats an error on every partition, because the first versions have no other place for it.
func failedTopics(q *kmsg.OffsetFetchRequest, errorCode int16) []kmsg.OffsetFetchResponseTopic {
	var topics []kmsg.OffsetFetchResponseTopic
	for _, t := range q.Topics {
		topic := kmsg.NewOffsetFetchResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			e := kmsg.NewOffsetFetchResponseTopicPartition()
			e.Partition, e.Offset, e.LeaderEpoch, e.Metadata, e.ErrorCode = p, -1, -1, new(string), errorCode
			topic.Partitions = append(topic.Partitions, e)
		}
		topics = append(topics, topic)
	}
	return topics
}

// fetchGroup answers for one group. A group that does not exist has committed nothing, which is no error.
func (m *Machine) fetchGroup(q kmsg.OffsetFetchRequestGroup, stable, byID bool) kmsg.OffsetFetchResponseGroup {
	answer := kmsg.NewOffsetFetchResponseGroup()
	answer.Group = q.Group
	g, err := m.lookup(q.Group)
	if err != nil {
		answer.ErrorCode = err.Code
		return answer
	}
	if g != nil && g.state == dead {
		g = nil
	}
	if q.Topics == nil {
		answer.Topics = m.fetchAll(g, stable, byID)
		return answer
	}
	for _, t := range q.Topics {
		topic := kmsg.NewOffsetFetchResponseGroupTopic()
		topic.Topic, topic.TopicID = t.Topic, t.TopicID
		name, err := m.topicName(t.Topic, t.TopicID, byID)
		for _, p := range t.Partitions {
			if err != nil {
				topic.Partitions = append(topic.Partitions, noOffset(p, err))
				continue
			}
			topic.Partitions = append(topic.Partitions, g.fetched(topicPartition{name, p}, stable))
		}
		answer.Topics = append(answer.Topics, topic)
	}
	return answer
}

// fetchAll answers with everything that a group has committed. By id, topics that do not exist any more are left out:
// they have none.
func (m *Machine) fetchAll(g *group, stable, byID bool) []kmsg.OffsetFetchResponseGroupTopic {
	topics := []kmsg.OffsetFetchResponseGroupTopic{}
	if g == nil {
		return topics
	}
	for _, tp := range slices.SortedFunc(maps.Keys(g.offsets), topicPartition.compare) {
		known, ok := m.topics[tp.topic]
		if byID && !ok {
			continue
		}
		if n := len(topics); n == 0 || topics[n-1].Topic != tp.topic {
			topic := kmsg.NewOffsetFetchResponseGroupTopic()
			topic.Topic, topic.TopicID = tp.topic, known.id
			topics = append(topics, topic)
		}
		last := &topics[len(topics)-1]
		last.Partitions = append(last.Partitions, g.fetched(tp, stable))
	}
	return topics
}

// fetched is the answer for one partition; g is nil if there is no such group.
func (g *group) fetched(tp topicPartition, stable bool) kmsg.OffsetFetchResponseGroupTopicPartition {
	if g == nil {
		return noOffset(tp.partition, nil)
	}
	if stable && g.unstable(tp) {
		return noOffset(tp.partition, kerr.UnstableOffsetCommit)
	}
	o, ok := g.offsets[tp]
	if !ok {
		return noOffset(tp.partition, nil)
	}
	e := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	e.Partition, e.Offset, e.LeaderEpoch, e.Metadata = tp.partition, o.at, o.leaderEpoch, &o.metadata
	return e
}

func noOffset(partition int32, err *kerr.Error) kmsg.OffsetFetchResponseGroupTopicPartition {
	e := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	e.Partition, e.Offset, e.LeaderEpoch, e.Metadata, e.ErrorCode = partition, -1, -1, new(string), code(err)
	return e
}
