package coordinator

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// committing is an OffsetCommit or a TxnOffsetCommit under way. Partitions fail one by one for what concerns them, and
// all together if the group does not take the commit or it cannot be stored.
type committing struct {
	request uint64
	group   *group
	txn     *Txn // of a TxnOffsetCommit
	commits []commit
	resp    kmsg.Response
	errors  []*int16 // where resp says how each partition fared
	exists  bool     // one of the partitions does
}

// commit is an offset on its way to the log.
type commit struct {
	topicPartition
	offset
}

// consider checks one partition, notes its error, and takes its offset in if there is none. topicErr is what resolving
// its topic gave.
func (c *committing) consider(m *Machine, tp topicPartition, o offset, topicErr *kerr.Error, errorCode *int16) {
	c.errors = append(c.errors, errorCode)
	switch {
	case topicErr != nil:
		*errorCode = topicErr.Code
		return
	case !m.knows(tp):
		*errorCode = kerr.UnknownTopicOrPartition.Code
		return
	}
	c.exists = true
	if len(o.metadata) > m.cfg.OffsetMetadataMaxSize {
		*errorCode = kerr.OffsetMetadataTooLarge.Code
		return
	}
	c.commits = append(c.commits, commit{tp, o})
}

// store emits the records of the offsets; they hold from the place in the log that the append gets. find returns the group,
// or why it does not take them; as in Kafka it is not even asked if no partition exists.
func (c *committing) store(m *Machine, find func() (*group, *kerr.Error)) {
	if !c.exists {
		m.reply(c.request, c.resp)
		return
	}
	g, err := find()
	if err != nil {
		c.refuse(m, err)
		return
	}
	if len(c.commits) == 0 {
		m.reply(c.request, c.resp)
		return
	}
	c.group = g
	records := make([]Record, len(c.commits))
	order := m.lastAppend + 1
	for i := range c.commits {
		o := &c.commits[i]
		o.order = order
		records[i] = offsetRecord(g.id, o.topicPartition, m.topics[o.topic].id, o.offset)
		g.send(o.topicPartition, c.txn != nil)
	}
	m.append(g.partition, records, c.txn, c)
}

// appended makes the offsets visible, or lets them wait for the end of their transaction. If they or
// the group were deleted meanwhile, the tombstones come after them in the log.
func (c *committing) appended(m *Machine, err *kerr.Error) {
	gone := m.groups[c.group.id] != c.group
	for _, o := range c.commits {
		deleted := gone || o.order < c.group.inFlight[o.topicPartition].tombstone
		c.group.landed(o.topicPartition, c.txn != nil)
		switch {
		case err != nil, deleted:
		case c.txn != nil:
			m.holdOpen(c.group, *c.txn, o.topicPartition, o.offset)
		default:
			c.group.accept(o.topicPartition, o.offset)
		}
	}
	if err != nil {
		c.refuse(m, storeError(err))
		return
	}
	m.reply(c.request, c.resp)
}

// refuse answers with the error on every partition, except on those that do not exist.
func (c *committing) refuse(m *Machine, err *kerr.Error) {
	for _, e := range c.errors {
		if *e != kerr.UnknownTopicOrPartition.Code && *e != kerr.UnknownTopicID.Code {
			*e = err.Code
		}
	}
	m.reply(c.request, c.resp)
}

// text is the wire's string; null is "".
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
