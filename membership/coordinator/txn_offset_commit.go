package coordinator

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// onTxnOffsetCommit serves TxnOffsetCommit (versions 0 to 6; by topic id from 6 on). The offsets become part of the
// producer's transaction: stored at once, visible when its marker commits them.
func (m *Machine) onTxnOffsetCommit(r Request, q *kmsg.TxnOffsetCommitRequest) {
	resp := kmsg.NewPtrTxnOffsetCommitResponse()
	resp.Version = q.Version
	resp.Topics = make([]kmsg.TxnOffsetCommitResponseTopic, len(q.Topics))
	c := &committing{request: r.ID, resp: resp, txn: &Txn{q.TransactionalID, q.ProducerID, q.ProducerEpoch}}
	for i, t := range q.Topics {
		answer := &resp.Topics[i]
		answer.Topic, answer.TopicID = t.Topic, t.TopicID
		answer.Partitions = make([]kmsg.TxnOffsetCommitResponseTopicPartition, len(t.Partitions))
		name, err := m.topicName(t.Topic, t.TopicID, q.Version >= 6)
		for j, p := range t.Partitions {
			answer.Partitions[j].Partition = p.Partition
			o := offset{p.Offset, p.LeaderEpoch, text(p.Metadata), m.wall, noExpiry, 0}
			c.consider(m, topicPartition{name, p.Partition}, o, err, &answer.Partitions[j].ErrorCode)
		}
	}
	c.store(m, func() (*group, *kerr.Error) { return m.txnCommitter(q) })
}

// txnCommitter finds the group and checks that the request may commit to it. Producers from before KIP-447 name no
// member: they are fenced by their transactional id alone. The end of a transaction must not wait for a rebalance, so
// a member may commit in every state.
func (m *Machine) txnCommitter(q *kmsg.TxnOffsetCommitRequest) (*group, *kerr.Error) {
	if q.Group == "" {
		return nil, kerr.InvalidGroupID
	}
	anonymous := q.Generation < 0 && q.MemberID == "" && q.InstanceID == nil
	g, err := m.lookup(q.Group)
	switch {
	case err == kerr.CoordinatorLoadInProgress && q.Version < 2:
		return nil, kerr.CoordinatorNotAvailable // old producers do not expect the other (KAFKA-7296)
	case err != nil:
		return nil, err
	case g == nil && q.Generation < 0:
		return m.newGroup(q.Group, PartitionFor(q.Group, m.cfg.OffsetsPartitions)), nil
	case g == nil && q.Version >= 6:
		return nil, kerr.GroupIDNotFound
	case g == nil:
		return nil, kerr.IllegalGeneration
	case g.state == dead:
		return nil, kerr.CoordinatorNotAvailable
	case g.state == empty && q.Generation < 0, anonymous:
		return g, nil
	}
	if _, err := g.validate(q.MemberID, q.InstanceID); err != nil {
		return nil, err
	}
	if q.Generation != g.generation {
		return nil, kerr.IllegalGeneration
	}
	return g, nil
}
