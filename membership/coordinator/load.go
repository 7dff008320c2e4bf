package coordinator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (m *Machine) onLoading(ev Loading) {
	if m.partitions[ev.Partition] == owned {
		m.onUnloaded(ev.Partition)
	}
	m.partitions[ev.Partition] = loading
}

// onLoaded replays a partition's log. Members come back in a Stable group with their whole session timeout ahead;
// what was only in memory (parked requests, handed out ids, a rebalance under way) is gone.
func (m *Machine) onLoaded(ev Loaded) {
	if m.partitions[ev.Partition] == owned {
		m.onUnloaded(ev.Partition)
	}
	m.partitions[ev.Partition] = owned
	l := loader{m: m, partition: ev.Partition, groups: make(map[string]*group)}
	for i := range ev.Records {
		if err := l.replay(&ev.Records[i]); err != nil {
			m.actions = append(m.actions, &BadRecord{Partition: ev.Partition, Index: i, Err: err})
		}
	}
	for _, g := range m.sortedGroups() {
		if l.groups[g.id] == g {
			l.finish(g)
		}
	}
	if m.expiry.index == notQueued {
		m.arm(&m.expiry, m.cfg.ExpiryInterval)
	}
}

// loader replays one partition.
type loader struct {
	m         *Machine
	partition int32
	groups    map[string]*group // of this partition, by id
}

func (l *loader) group(id string) *group {
	g := l.groups[id]
	if g == nil {
		g = l.m.newGroup(id, l.partition)
		l.groups[id] = g
	}
	return g
}

// replay applies one log entry. Keys of unknown versions are skipped (KIP-915).
func (l *loader) replay(r *LogRecord) error {
	if r.Marker != nil {
		for _, g := range l.groups {
			l.m.endTxn(g, *r.Marker)
		}
		return nil
	}
	if len(r.Key) < 2 {
		return errors.New("the key is shorter than its version")
	}
	switch version := int16(binary.BigEndian.Uint16(r.Key)); version {
	case 0, 1:
		return l.replayOffset(r)
	case 2:
		return l.replayGroup(r)
	}
	return nil
}

func (l *loader) replayOffset(r *LogRecord) error {
	var k kmsg.OffsetCommitKey
	if err := k.ReadFrom(r.Key); err != nil {
		return fmt.Errorf("offset key: %w", err)
	}
	tp := topicPartition{k.Topic, k.Partition}
	l.m.lastAppend++ // the order of records in the log is the order of offsets
	if r.Value == nil {
		if g := l.groups[k.Group]; g != nil {
			g.forget(tp, l.m.lastAppend)
		}
		return nil
	}
	v := kmsg.NewOffsetCommitValue()
	if err := v.ReadFrom(r.Value); err != nil {
		return fmt.Errorf("offset of group %q, topic %q, partition %d: %w", k.Group, k.Topic, k.Partition, err)
	}
	if v.Version < 3 {
		v.LeaderEpoch = -1 // it has none, which 0 would not say
	}
	o := offset{v.Offset, v.LeaderEpoch, v.Metadata, v.CommitTimestamp, noExpiry, l.m.lastAppend}
	if v.Version == expiringValueVersion && v.ExpireTimestamp >= 0 {
		o.expires = v.ExpireTimestamp
	}
	g := l.group(k.Group)
	if r.Txn != nil {
		l.m.holdOpen(g, *r.Txn, tp, o)
		return nil
	}
	g.offsets[tp] = o
	return nil
}

func (l *loader) replayGroup(r *LogRecord) error {
	var k kmsg.GroupMetadataKey
	if err := k.ReadFrom(r.Key); err != nil {
		return fmt.Errorf("group key: %w", err)
	}
	if r.Value == nil {
		if g := l.groups[k.Group]; g != nil {
			g.image = nil
		}
		return nil
	}
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(r.Value); err != nil {
		return fmt.Errorf("group %q: %w", k.Group, err)
	}
	l.group(k.Group).image = &v
	return nil
}

// finish builds a group from what the log says last of it.
func (l *loader) finish(g *group) {
	if g.image == nil {
		if len(g.offsets) == 0 && len(g.open) == 0 {
			l.m.become(g, dead)
			l.m.forgetGroup(g)
		}
		return
	}
	v := g.image
	g.generation, g.protocolType = v.Generation, v.ProtocolType
	g.protocol, g.leader = text(v.Protocol), text(v.Leader)
	g.stateSince = v.CurrentStateTimestamp
	for i := range v.Members {
		l.member(g, v, &v.Members[i])
	}
	g.readTopics()
	if len(g.members) == 0 {
		g.leader = ""
		return
	}
	if g.byID[g.leader] == nil {
		g.leader = g.members[0].id
	}
	g.chooseSpares()
	g.state = stable // where a group with members begins: no transition leads here from Empty
	if len(g.members) > l.m.cfg.MaxGroupSize {
		l.m.prepareRebalance(g)
	}
}

// member brings a member back. It offers only the selected protocol: the others are not stored.
func (l *loader) member(g *group, v *kmsg.GroupMetadataValue, e *kmsg.GroupMetadataValueMember) {
	mb := &member{
		id:               e.MemberID,
		instanceID:       e.InstanceID,
		clientID:         e.ClientID,
		clientHost:       e.ClientHost,
		sessionTimeout:   millis(e.SessionTimeoutMillis),
		rebalanceTimeout: millis(e.RebalanceTimeoutMillis),
		assignment:       e.Assignment,
		lastContact:      l.m.now,
	}
	if v.Version < 1 {
		mb.rebalanceTimeout = mb.sessionTimeout
	}
	if v.Protocol != nil {
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = *v.Protocol, e.Subscription
		mb.protocols = []kmsg.JoinGroupRequestProtocol{p}
	}
	mb.session = timer{kind: sessionTimer, group: g, member: mb, index: notQueued}
	g.add(mb, v.ProtocolType)
	l.m.arm(&mb.session, mb.sessionTimeout)
}

// onUnloaded forgets a partition's groups; whoever waits here is sent to the new coordinator.
func (m *Machine) onUnloaded(partition int32) {
	m.partitions[partition] = notOwned
	for _, g := range m.sortedGroups() {
		if g.partition != partition {
			continue
		}
		for _, mb := range g.members {
			if mb.join.waiting {
				m.answerJoin(g, mb, joinRefused(mb.id, mb.join.version, kerr.NotCoordinator))
			}
			if mb.sync.waiting {
				m.reply(mb.sync.id, syncRefused(mb.sync.version, kerr.NotCoordinator))
				mb.sync = parked{}
			}
		}
		for len(g.newcomers) > 0 {
			m.dropNewcomer(g, 0, kerr.NotCoordinator)
		}
		if g.force != nil {
			m.forced(&Forced{ID: g.force.id, Err: kerr.NotCoordinator, Reason: "the group's partition was taken away before the generation began"})
		}
		if g.state != dead {
			m.become(g, dead)
		}
		m.forgetGroup(g)
	}
	m.abandonAppends(partition)
}

// abandonAppends gives up on the appends of a partition that is gone. The requests that wait for them are answered
// NOT_COORDINATOR; whether the records are durable is for the next coordinator to find in the log.
func (m *Machine) abandonAppends(partition int32) {
	for _, id := range slices.Sorted(maps.Keys(m.appends)) {
		if pending := m.appends[id]; pending.partition == partition {
			delete(m.appends, id)
			pending.then.appended(m, kerr.NotLeaderForPartition)
		}
	}
}
