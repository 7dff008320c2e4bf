package coordinator

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Versions of the records that are written. Every version that Kafka ever wrote is read.
const (
	offsetKeyVersion     = 1
	offsetValueVersion   = 4 // with the topic id
	unnamedValueVersion  = 3 // of a topic whose id is not known
	expiringValueVersion = 1 // the only version that holds an expiry time
	groupKeyVersion      = 2
	groupValueVersion    = 3
)

func groupKey(id string) []byte {
	k := kmsg.NewGroupMetadataKey()
	k.Version, k.Group = groupKeyVersion, id
	return k.AppendTo(nil)
}

func offsetKey(group string, tp topicPartition) []byte {
	k := kmsg.NewOffsetCommitKey()
	k.Version, k.Group, k.Topic, k.Partition = offsetKeyVersion, group, tp.topic, tp.partition
	return k.AppendTo(nil)
}

func offsetRecord(group string, tp topicPartition, topicID [16]byte, o offset) Record {
	v := kmsg.NewOffsetCommitValue()
	v.Version, v.TopicID = offsetValueVersion, topicID
	if topicID == ([16]byte{}) {
		v.Version = unnamedValueVersion
	}
	if o.expires != noExpiry {
		v.Version, v.ExpireTimestamp = expiringValueVersion, o.expires
	}
	v.Offset, v.LeaderEpoch, v.Metadata, v.CommitTimestamp = o.at, o.leaderEpoch, o.metadata, o.committed
	return Record{offsetKey(group, tp), v.AppendTo(nil)}
}

func offsetTombstone(group string, tp topicPartition) Record {
	return Record{Key: offsetKey(group, tp)}
}

// snapshot is what is stored of a group: its members with what they say under the selected protocol (their other
// protocols are not stored), and their assignments, which a leader's Sync brings or which they have.
func (g *group) snapshot(assignment map[string][]byte) *kmsg.GroupMetadataValue {
	v := kmsg.NewGroupMetadataValue()
	v.Version = groupValueVersion
	v.ProtocolType = g.protocolType
	v.Generation = g.generation
	v.Protocol = nullable(g.protocol)
	v.Leader = nullable(g.leader)
	v.CurrentStateTimestamp = g.stateSince
	v.Members = make([]kmsg.GroupMetadataValueMember, 0, len(g.members))
	for _, mb := range g.members {
		e := kmsg.NewGroupMetadataValueMember()
		e.MemberID, e.InstanceID = mb.id, mb.instanceID
		e.ClientID, e.ClientHost = mb.clientID, mb.clientHost
		e.RebalanceTimeoutMillis = int32(mb.rebalanceTimeout.Milliseconds())
		e.SessionTimeoutMillis = int32(mb.sessionTimeout.Milliseconds())
		e.Subscription = mb.metadata(g.protocol)
		e.Assignment = mb.assignment
		if assignment != nil {
			e.Assignment = assignment[mb.id]
		}
		v.Members = append(v.Members, e)
	}
	return &v
}

// storeImage emits a group record.
func (m *Machine) storeImage(g *group, image *kmsg.GroupMetadataValue, then continuation) {
	g.image = image
	m.append(g.partition, []Record{{groupKey(g.id), image.AppendTo(nil)}}, nil, then)
}

// renamed is the image with the present id of a static member, or the image itself if that changes nothing.
func renamed(image *kmsg.GroupMetadataValue, mb *member) *kmsg.GroupMetadataValue {
	if image == nil {
		return nil
	}
	for i, e := range image.Members {
		if e.InstanceID == nil || *e.InstanceID != *mb.instanceID || e.MemberID == mb.id {
			continue
		}
		changed := *image
		changed.Members = slices.Clone(image.Members)
		changed.Members[i].MemberID = mb.id
		if image.Leader != nil && *image.Leader == e.MemberID {
			changed.Leader = nullable(mb.id)
		}
		return &changed
	}
	return image
}

// withoutGone is the image without the static members that the group no longer has, or the image itself if it has
// them all.
func withoutGone(image *kmsg.GroupMetadataValue, g *group) *kmsg.GroupMetadataValue {
	if image == nil {
		return nil
	}
	gone := func(e kmsg.GroupMetadataValueMember) bool {
		return e.InstanceID != nil && g.byInstance[*e.InstanceID] == nil
	}
	if !slices.ContainsFunc(image.Members, gone) {
		return image
	}
	changed := *image
	changed.Members = slices.DeleteFunc(slices.Clone(image.Members), gone)
	if !slices.ContainsFunc(changed.Members, func(e kmsg.GroupMetadataValueMember) bool {
		return changed.Leader != nil && e.MemberID == *changed.Leader
	}) {
		changed.Leader = nil
	}
	return &changed
}

// storedNothing waits for a record that no answer depends on. If its append fails, the log keeps an older state, and
// the next record of the group repairs it.
type storedNothing struct{}

func (storedNothing) appended(*Machine, *kerr.Error) {}

// newGroupStored waits for the record of a group that a join created.
type newGroupStored struct {
	group   *group
	request uint64
}

// storeNewGroup stores a new group as an empty one, as Kafka does with the first join.
func (m *Machine) storeNewGroup(g *group, request uint64) {
	v := kmsg.NewGroupMetadataValue()
	v.Version, v.CurrentStateTimestamp = groupValueVersion, g.stateSince
	m.storeImage(g, &v, newGroupStored{g, request})
}

// appended refuses the first join if the group cannot be stored. A join that was answered already (with an id to come
// back with) is not affected.
func (c newGroupStored) appended(m *Machine, err *kerr.Error) {
	if err == nil {
		return
	}
	for _, mb := range c.group.members {
		if mb.join.waiting && mb.join.id == c.request {
			m.answerJoin(c.group, mb, joinRefused("", mb.join.version, storeError(err)))
			return
		}
	}
}
