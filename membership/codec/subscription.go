package codec

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/millrace-io/millrace/internal/taskid"
)

// NoGeneration is the generation of a member that has not been part of one, Kafka's own -1.
const NoGeneration = -1

// A Subscription is what one member (a stream thread) tells the leader when it joins.
type Subscription struct {
	// Version is the writer's version. It is set by [DecodeSubscription] and ignored by [Subscription.Encode].
	Version int

	// ProcessID is the persisted id of the process, the same for all threads that share a state directory.
	ProcessID string
	// ClientID is the client id of the process, without the thread's suffix.
	ClientID string
	// Endpoint is the host:port under which the process answers queries, or "".
	Endpoint string
	// TopologyHash tells topologies apart: the same topology has the same hash in every process.
	TopologyHash uint64
	// Subtopologies lists the sub-topologies that the member can run: during a rolling upgrade processes differ. Empty: it
	// did not tell.
	Subtopologies []string
	// Tags describe where the process runs (zone, rack), for placing standbys apart.
	Tags map[string]string

	// Generation is the group generation in which Owned was granted, or [NoGeneration].
	Generation int32
	// Owned lists the active tasks that the member has not released: nobody else may be given them before it has.
	Owned []taskid.ID
	// Standby lists the tasks that the member keeps a copy of.
	Standby []taskid.ID
	// Offsets lists the tasks of which the process has local state on its disk, and how far that has come (0: unknown).
	Offsets []TaskOffset
}

// A TaskOffset is the progress of one task's local state: the sum of its changelog offsets.
type TaskOffset struct {
	Task taskid.ID
	Sum  int64
}

const (
	subProcessID = iota + 1
	subClientID
	subEndpoint
	subTopologyHash
	subTags
	subGeneration
	subOwned
	subStandby
	subOffsets
	subSubtopologies
)

// Encode returns the bytes of s. Lists keep their order; sorted ones are the shortest.
func (s *Subscription) Encode() []byte {
	dst := appendHeader(make([]byte, 0, 256), kindSubscription)
	dst = appendField(dst, subProcessID, []byte(s.ProcessID))
	dst = appendField(dst, subClientID, []byte(s.ClientID))
	dst = appendField(dst, subEndpoint, []byte(s.Endpoint))
	dst = appendField(dst, subTopologyHash, hashBytes(s.TopologyHash))
	dst = appendField(dst, subTags, tagBytes(s.Tags))
	// A generation is always written: that it is missing must not read as generation 0.
	dst = appendField(dst, subGeneration, binary.AppendVarint(nil, int64(s.Generation)))
	dst = appendField(dst, subOwned, appendTasks(nil, s.Owned))
	dst = appendField(dst, subStandby, appendTasks(nil, s.Standby))
	dst = appendField(dst, subOffsets, offsetBytes(s.Offsets))
	return appendField(dst, subSubtopologies, nameBytes(s.Subtopologies))
}

// DecodeSubscription is the inverse of [Subscription.Encode]. The result does not alias src.
func DecodeSubscription(src []byte) (Subscription, error) {
	version, fields, err := readHeader(src, kindSubscription)
	if err != nil {
		return Subscription{}, err
	}
	s := Subscription{Version: version, Generation: NoGeneration}
	err = eachField(fields, func(tag uint64, r *reader) {
		switch tag {
		case subProcessID:
			s.ProcessID = r.rest()
		case subClientID:
			s.ClientID = r.rest()
		case subEndpoint:
			s.Endpoint = r.rest()
		case subTopologyHash:
			s.TopologyHash = r.fixed64()
		case subTags:
			s.Tags = r.tags()
		case subGeneration:
			s.Generation = r.int32()
		case subOwned:
			s.Owned = r.tasks()
		case subStandby:
			s.Standby = r.tasks()
		case subOffsets:
			s.Offsets = r.offsets()
		case subSubtopologies:
			s.Subtopologies = r.names()
		}
	})
	if err != nil {
		return Subscription{}, err
	}
	return s, nil
}

// KnownHash condenses what the leader must know of this member to plan rightly and to tell others: endpoint, topology
// hash and tags. Offsets and owned tasks are left out on purpose, they change all the time. The result is never 0,
// which stands for "the leader knew nothing".
func (s *Subscription) KnownHash() uint64 {
	h := fnv.New64a()
	buf := appendString(nil, s.Endpoint)
	buf = binary.BigEndian.AppendUint64(buf, s.TopologyHash)
	h.Write(append(buf, tagBytes(s.Tags)...))
	return max(h.Sum64(), 1)
}

func hashBytes(v uint64) []byte {
	if v == 0 {
		return nil
	}
	return binary.BigEndian.AppendUint64(nil, v)
}

func tagBytes(tags map[string]string) []byte {
	var dst []byte
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		dst = appendString(dst, key)
		dst = appendString(dst, tags[key])
	}
	return dst
}

func (r *reader) tags() map[string]string {
	tags := map[string]string{}
	for len(r.buf) > 0 {
		key := r.string()
		tags[key] = r.string()
	}
	return tags
}

func nameBytes(names []string) []byte {
	var dst []byte
	for _, name := range names {
		dst = appendString(dst, name)
	}
	return dst
}

func (r *reader) names() (names []string) {
	for len(r.buf) > 0 {
		names = append(names, r.string())
	}
	return names
}

func offsetBytes(offsets []TaskOffset) []byte {
	var dst []byte
	for len(offsets) > 0 {
		sub := offsets[0].Task.Subtopology
		run := slices.IndexFunc(offsets, func(o TaskOffset) bool { return o.Task.Subtopology != sub })
		if run < 0 {
			run = len(offsets)
		}
		dst = appendString(dst, sub)
		dst = binary.AppendUvarint(dst, uint64(run))
		for _, o := range offsets[:run] {
			dst = binary.AppendVarint(dst, int64(o.Task.Partition))
			dst = binary.AppendVarint(dst, o.Sum)
		}
		offsets = offsets[run:]
	}
	return dst
}

func (r *reader) offsets() []TaskOffset {
	var offsets []TaskOffset
	for len(r.buf) > 0 {
		sub := r.string()
		for range r.count(2) {
			id := taskid.ID{Subtopology: sub, Partition: r.int32()}
			offsets = append(offsets, TaskOffset{Task: id, Sum: r.varint()})
		}
	}
	return offsets
}
