package coordinator

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// onOffsetCommit serves OffsetCommit (versions 0 to 10; by topic id from 10 on).
func (m *Machine) onOffsetCommit(r Request, q *kmsg.OffsetCommitRequest) {
	resp := kmsg.NewPtrOffsetCommitResponse()
	resp.Version = q.Version
	resp.Topics = make([]kmsg.OffsetCommitResponseTopic, len(q.Topics))
	c := &committing{request: r.ID, resp: resp}
	expires := int64(noExpiry)
	if q.Version >= 2 && q.Version <= 4 && q.RetentionTimeMillis >= 0 {
		expires = m.wall + q.RetentionTimeMillis
	}
	for i, t := range q.Topics {
		answer := &resp.Topics[i]
		answer.Topic, answer.TopicID = t.Topic, t.TopicID
		answer.Partitions = make([]kmsg.OffsetCommitResponseTopicPartition, len(t.Partitions))
		name, err := m.topicName(t.Topic, t.TopicID, q.Version >= 10)
		for j, p := range t.Partitions {
			answer.Partitions[j].Partition = p.Partition
			o := offset{p.Offset, p.LeaderEpoch, text(p.Metadata), m.wall, expires, 0}
			c.consider(m, topicPartition{name, p.Partition}, o, err, &answer.Partitions[j].ErrorCode)
		}
	}
	c.store(m, func() (*group, *kerr.Error) { return m.committer(q) })
}

// committer finds the group and checks that the request may commit to it. A commit without a generation creates the
// group: it is from a consumer that assigns partitions to itself.
func (m *Machine) committer(q *kmsg.OffsetCommitRequest) (*group, *kerr.Error) {
	if q.Group == "" && m.holds(emptyGroupIDIsRefused) {
		return nil, kerr.InvalidGroupID
	}
	g, err := m.lookup(q.Group)
	switch {
	case err != nil:
		return nil, err
	case g == nil && q.Generation < 0:
		return m.newGroup(q.Group, PartitionFor(q.Group, m.cfg.OffsetsPartitions)), nil
	case g == nil && q.Version >= 9:
		return nil, kerr.GroupIDNotFound
	case g == nil:
		return nil, kerr.IllegalGeneration
	case g.state == dead:
		return nil, kerr.CoordinatorNotAvailable
	case g.state == empty && q.Generation < 0:
		return g, nil // whatever ids it names: a consumer without a group may carry an instance id (KAFKA-14201)
	}
	mb, err := g.validate(q.MemberID, q.InstanceID)
	switch {
	case err != nil:
		return nil, err
	case q.Generation != g.generation:
		return nil, kerr.IllegalGeneration
	case g.state == completingRebalance:
		return nil, kerr.RebalanceInProgress
	}
	m.heard(mb)
	return g, nil
}
