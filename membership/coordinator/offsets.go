package coordinator

import (
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// topicPartition names a partition whose offset a group commits.
type topicPartition struct {
	topic     string
	partition int32
}

func (a topicPartition) compare(b topicPartition) int {
	if c := strings.Compare(a.topic, b.topic); c != 0 {
		return c
	}
	return int(a.partition) - int(b.partition)
}

const noExpiry = -1

// offset is a committed offset.
type offset struct {
	at          int64
	leaderEpoch int32
	metadata    string
	committed   int64  // Unix milliseconds
	expires     int64  // Unix milliseconds, from a retention that old clients ask for; noExpiry: the group's rule
	order       uint64 // of its append, as the log has it: of two offsets the later one holds
}

// openOffsets are the offsets of one transaction that has not ended yet.
type openOffsets struct {
	epoch   int16
	offsets map[topicPartition]offset
}

// accept makes a stored offset the committed one, unless a later one already is: appends may be acknowledged in any
// order, and a transaction's marker comes after its offsets.
func (g *group) accept(tp topicPartition, o offset) {
	if present, ok := g.offsets[tp]; !ok || present.order < o.order {
		g.offsets[tp] = o
	}
}

// forget drops an offset, also one that is pending on a transaction or on its way, unless it came after the tombstone.
func (g *group) forget(tp topicPartition, tombstone uint64) {
	if f, ok := g.inFlight[tp]; ok {
		f.tombstone = max(f.tombstone, tombstone)
		g.inFlight[tp] = f
	}
	if g.offsets[tp].order < tombstone {
		delete(g.offsets, tp)
	}
	for _, open := range g.open {
		if open.offsets[tp].order < tombstone {
			delete(open.offsets, tp)
		}
	}
}

// storedOffsets lists what the log holds offsets of, or is about to, those pending on transactions included.
func (g *group) storedOffsets() []topicPartition {
	stored := make(map[topicPartition]struct{})
	for tp := range g.inFlight {
		stored[tp] = struct{}{}
	}
	for tp := range g.offsets {
		stored[tp] = struct{}{}
	}
	for _, open := range g.open {
		for tp := range open.offsets {
			stored[tp] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Keys(stored), topicPartition.compare)
}

// unstable reports whether a transaction that has not ended may change an offset.
func (g *group) unstable(tp topicPartition) bool {
	if g.inFlight[tp].txn > 0 {
		return true
	}
	for _, open := range g.open {
		if _, ok := open.offsets[tp]; ok {
			return true
		}
	}
	return false
}

// inFlight counts the offsets of a partition whose appends are not acknowledged yet. tombstone is the newest one that was
// acknowledged meanwhile: what came before it in the log is gone.
type inFlight struct {
	all, txn  int
	tombstone uint64
}

// send notes that an offset is on its way to the log.
func (g *group) send(tp topicPartition, txn bool) {
	f := g.inFlight[tp]
	f.all++
	if txn {
		f.txn++
	}
	g.inFlight[tp] = f
}

// landed notes that the append of an offset has ended.
func (g *group) landed(tp topicPartition, txn bool) {
	f := g.inFlight[tp]
	f.all--
	if txn {
		f.txn--
	}
	g.inFlight[tp] = f
	if f.all == 0 {
		delete(g.inFlight, tp)
	}
}

// holdOpen keeps an offset until the transaction that it is part of ends.
func (m *Machine) holdOpen(g *group, txn Txn, tp topicPartition, o offset) {
	open := g.open[txn.ProducerID]
	if open == nil {
		open = &openOffsets{offsets: make(map[topicPartition]offset)}
		g.open[txn.ProducerID] = open
	}
	open.epoch = max(open.epoch, txn.ProducerEpoch)
	open.offsets[tp] = o
	groups := m.txns[txn.ProducerID]
	if groups == nil {
		groups = make(map[*group]struct{})
		m.txns[txn.ProducerID] = groups
	}
	groups[g] = struct{}{}
}

// onTxnEnded applies or drops what was pending on a transaction.
func (m *Machine) onTxnEnded(ev TxnEnded) {
	for g := range m.txns[ev.ProducerID] {
		m.endTxn(g, ev)
	}
}

func (m *Machine) endTxn(g *group, ev TxnEnded) {
	open := g.open[ev.ProducerID]
	if open == nil || open.epoch > ev.ProducerEpoch {
		return
	}
	if ev.Commit {
		for tp, o := range open.offsets {
			g.accept(tp, o)
		}
	}
	m.closeTxn(g, ev.ProducerID)
}

func (m *Machine) closeTxn(g *group, producerID int64) {
	delete(g.open, producerID)
	delete(m.txns[producerID], g)
	if len(m.txns[producerID]) == 0 {
		delete(m.txns, producerID)
	}
}

// onTopicChanged learns of a topic; a topic that was created anew under its name has another id.
func (m *Machine) onTopicChanged(ev TopicChanged) {
	delete(m.topicNames, m.topics[ev.Topic].id)
	m.topics[ev.Topic] = topic{ev.ID, ev.Partitions}
	if ev.ID != ([16]byte{}) {
		m.topicNames[ev.ID] = ev.Topic
	}
}

// onTopicDeleted deletes what the groups committed for a topic that is gone.
func (m *Machine) onTopicDeleted(ev TopicDeleted) {
	delete(m.topicNames, m.topics[ev.Topic].id)
	delete(m.topics, ev.Topic)
	for _, g := range m.sortedGroups() {
		m.deleteOffsets(g, func(tp topicPartition) bool { return tp.topic == ev.Topic }, nil)
	}
}

// knows reports whether a partition exists.
func (m *Machine) knows(tp topicPartition) bool {
	t, ok := m.topics[tp.topic]
	return ok && tp.partition >= 0 && tp.partition < t.partitions
}

// topicName resolves what a request names a topic by: an id in the versions that have ids, otherwise the name.
func (m *Machine) topicName(name string, id [16]byte, byID bool) (string, *kerr.Error) {
	if !byID {
		return name, nil
	}
	name, ok := m.topicNames[id]
	if !ok {
		return "", kerr.UnknownTopicID
	}
	return name, nil
}

// offsetsDeleted waits for tombstones.
type offsetsDeleted struct {
	group   *group
	deleted []topicPartition
	order   uint64       // of the tombstones in the log
	then    continuation // may be nil
}

// deleteOffsets emits tombstones for the offsets that match, pending ones included. then, which may be nil, is told the
// outcome; it is told at once if nothing matches.
func (m *Machine) deleteOffsets(g *group, match func(topicPartition) bool, then continuation) {
	c := &offsetsDeleted{group: g, then: then}
	var records []Record
	for _, tp := range g.storedOffsets() {
		if match(tp) {
			c.deleted = append(c.deleted, tp)
			records = append(records, offsetTombstone(g.id, tp))
		}
	}
	if len(records) == 0 {
		c.appended(m, nil)
		return
	}
	c.order = m.append(g.partition, records, nil, c)
}

func (c *offsetsDeleted) appended(m *Machine, err *kerr.Error) {
	if err == nil {
		for _, tp := range c.deleted {
			c.group.forget(tp, c.order)
		}
	}
	if c.then != nil {
		c.then.appended(m, err)
	}
}
