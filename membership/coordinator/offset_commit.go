package coordinator

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// onOffsetCommit serves OffsetCommit (versions 0 to 10; by topic id from 10 on). Partitions fail one by one for what
// concerns them, and all together if the member may not commit.
func (m *Machine) onOffsetCommit(r Request, q *kmsg.OffsetCommitRequest) {
	c := &offsetsStored{request: r.ID, resp: kmsg.NewPtrOffsetCommitResponse()}
	c.resp.Version = q.Version
	if q.Version == 0 {
		q.Generation = -1 // version 0 knows neither members nor generations
	}
	expires := int64(noExpiry)
	if q.Version >= 2 && q.Version <= 4 && q.RetentionTimeMillis >= 0 {
		expires = m.wall + q.RetentionTimeMillis
	}
	wanted := false // is there a partition that exists
	for _, t := range q.Topics {
		answer := kmsg.NewOffsetCommitResponseTopic()
		answer.Topic, answer.TopicID = t.Topic, t.TopicID
		name, err := m.topicName(t.Topic, t.TopicID, q.Version >= 10)
		for _, p := range t.Partitions {
			tp := topicPartition{name, p.Partition}
			e := kmsg.NewOffsetCommitResponseTopicPartition()
			e.Partition = p.Partition
			e.ErrorCode = code(m.checkCommit(tp, p.Metadata, err))
			answer.Partitions = append(answer.Partitions, e)
			wanted = wanted || e.ErrorCode == 0 || e.ErrorCode == kerr.OffsetMetadataTooLarge.Code
			if e.ErrorCode == 0 {
				o := offset{p.Offset, p.LeaderEpoch, text(p.Metadata), m.wall, expires, 0}
				c.commits = append(c.commits, commit{tp, o})
			}
		}
		c.resp.Topics = append(c.resp.Topics, answer)
	}
	if !wanted {
		m.reply(r.ID, c.resp)
		return
	}
	var err *kerr.Error
	if c.group, err = m.committer(q); err != nil {
		c.refuse(m, err)
		return
	}
	if len(c.commits) == 0 {
		m.reply(r.ID, c.resp)
		return
	}
	m.storeOffsets(c.group, c.commits, nil, c)
}

// checkCommit checks what concerns one partition. topicErr is what resolving its topic gave.
func (m *Machine) checkCommit(tp topicPartition, metadata *string, topicErr *kerr.Error) *kerr.Error {
	switch {
	case topicErr != nil:
		return topicErr
	case !m.knows(tp):
		return kerr.UnknownTopicOrPartition
	case metadata != nil && len(*metadata) > m.cfg.OffsetMetadataMaxSize:
		return kerr.OffsetMetadataTooLarge
	}
	return nil
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
	case q.Generation < 0 && q.MemberID == "" && q.InstanceID == nil:
		return nil, kerr.UnknownMemberID
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

// storeOffsets emits the records of offsets; they hold from the place in the log that the append gets.
func (m *Machine) storeOffsets(g *group, commits []commit, txn *Txn, then continuation) {
	records := make([]Record, len(commits))
	order := m.lastAppend + 1
	for i := range commits {
		commits[i].order = order
		records[i] = offsetRecord(g.id, commits[i].topicPartition, commits[i].offset)
	}
	m.append(g.partition, records, txn, then)
}

// offsetsStored waits for the records of a commit.
type offsetsStored struct {
	request uint64
	group   *group
	commits []commit
	resp    *kmsg.OffsetCommitResponse
}

func (c *offsetsStored) appended(m *Machine, err *kerr.Error) {
	if err != nil {
		c.refuse(m, storeError(err))
		return
	}
	for _, o := range c.commits {
		c.group.accept(o.topicPartition, o.offset)
	}
	m.reply(c.request, c.resp)
}

// refuse answers with the error on every partition that the request could have committed.
func (c *offsetsStored) refuse(m *Machine, err *kerr.Error) {
	for i := range c.resp.Topics {
		partitions := c.resp.Topics[i].Partitions
		for j := range partitions {
			partitions[j].ErrorCode = overruled(partitions[j].ErrorCode, err)
		}
	}
	m.reply(c.request, c.resp)
}

// overruled is a partition's error when the whole commit fails: only that the partition does not exist stands.
func overruled(present int16, err *kerr.Error) int16 {
	if present == kerr.UnknownTopicOrPartition.Code || present == kerr.UnknownTopicID.Code {
		return present
	}
	return err.Code
}

// text is the wire's string; null is "".
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
