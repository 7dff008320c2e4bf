package coordinator

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// onTxnOffsetCommit serves TxnOffsetCommit (versions 0 to 6; by topic id from 6 on). The offsets become part of the
// producer's transaction: stored at once, visible when its marker commits them.
func (m *Machine) onTxnOffsetCommit(r Request, q *kmsg.TxnOffsetCommitRequest) {
	c := &txnOffsetsStored{
		request: r.ID,
		txn:     Txn{q.TransactionalID, q.ProducerID, q.ProducerEpoch},
		resp:    kmsg.NewPtrTxnOffsetCommitResponse(),
	}
	c.resp.Version = q.Version
	wanted := false
	for _, t := range q.Topics {
		answer := kmsg.NewTxnOffsetCommitResponseTopic()
		answer.Topic, answer.TopicID = t.Topic, t.TopicID
		name, err := m.topicName(t.Topic, t.TopicID, q.Version >= 6)
		for _, p := range t.Partitions {
			tp := topicPartition{name, p.Partition}
			e := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			e.Partition = p.Partition
			e.ErrorCode = code(m.checkCommit(tp, p.Metadata, err))
			answer.Partitions = append(answer.Partitions, e)
			wanted = wanted || e.ErrorCode == 0 || e.ErrorCode == kerr.OffsetMetadataTooLarge.Code
			if e.ErrorCode == 0 {
				c.commits = append(c.commits, commit{tp, offset{p.Offset, p.LeaderEpoch, text(p.Metadata), m.wall, noExpiry, 0}})
			}
		}
		c.resp.Topics = append(c.resp.Topics, answer)
	}
	if !wanted {
		m.reply(r.ID, c.resp)
		return
	}
	var err *kerr.Error
	if c.group, err = m.txnCommitter(q); err != nil {
		c.refuse(m, err)
		return
	}
	if len(c.commits) == 0 {
		m.reply(r.ID, c.resp)
		return
	}
	for _, o := range c.commits {
		c.group.inFlight[o.topicPartition]++
	}
	m.storeOffsets(c.group, c.commits, &c.txn, c)
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

// txnOffsetsStored waits for the records of a transactional commit.
type txnOffsetsStored struct {
	request uint64
	txn     Txn
	group   *group
	commits []commit
	resp    *kmsg.TxnOffsetCommitResponse
}

func (c *txnOffsetsStored) appended(m *Machine, err *kerr.Error) {
	for _, o := range c.commits {
		if c.group.inFlight[o.topicPartition]--; c.group.inFlight[o.topicPartition] == 0 {
			delete(c.group.inFlight, o.topicPartition)
		}
	}
	if err != nil {
		c.refuse(m, storeError(err))
		return
	}
	for _, o := range c.commits {
		m.holdOpen(c.group, c.txn, o.topicPartition, o.offset)
	}
	m.reply(c.request, c.resp)
}

func (c *txnOffsetsStored) refuse(m *Machine, err *kerr.Error) {
	for i := range c.resp.Topics {
		partitions := c.resp.Topics[i].Partitions
		for j := range partitions {
			partitions[j].ErrorCode = overruled(partitions[j].ErrorCode, err)
		}
	}
	m.reply(c.request, c.resp)
}
