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

	// concernsGroup is set if a partition exists: otherwise, as in Kafka, the group is not even asked.
	concernsGroup bool
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
	c.concernsGroup = true
	if len(o.metadata) > m.cfg.OffsetMetadataMaxSize {
		*errorCode = kerr.OffsetMetadataTooLarge.Code
		return
	}
	c.commits = append(c.commits, commit{tp, o})
}

// store emits the records of the offsets; they hold from the place in the log that the append gets. err is why the
// group does not take them.
func (c *committing) store(m *Machine, g *group, err *kerr.Error) {
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
		if c.txn != nil {
			g.inFlight[o.topicPartition]++
		}
	}
	m.append(g.partition, records, c.txn, c)
}

// appended makes the offsets visible, or lets them wait for the end of their transaction.
func (c *committing) appended(m *Machine, err *kerr.Error) {
	for _, o := range c.commits {
		if c.txn != nil {
			c.group.landed(o.topicPartition)
		}
		switch {
		case err != nil:
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
