package coordinator

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// client returns who sends a request: the client id is that of the instance or of the member unless given.
func (a *args) client(instance *string, member string) (clientID, host string) {
	def := "client"
	switch {
	case instance != nil:
		def = *instance
	case strings.Contains(member, "-"):
		def = member[:strings.LastIndex(member, "-")]
	}
	return a.text("client", def), a.text("host", "/127.0.0.1")
}

func (w *world) generation(group string) int32 {
	if g := w.m.groups[group]; g != nil {
		return g.generation
	}
	return 0
}

// joinProtocols reads protocols=(range:bytes,roundrobin); the metadata of a protocol is its name and who offers it,
// unless given.
func joinProtocols(names []string, who string) []kmsg.JoinGroupRequestProtocol {
	var list []kmsg.JoinGroupRequestProtocol
	for _, n := range names {
		p := kmsg.NewJoinGroupRequestProtocol()
		name, metadata := cut(n)
		if metadata == "" {
			metadata = name + "/" + who
		}
		p.Name, p.Metadata = name, []byte(metadata)
		if topics, ok := strings.CutPrefix(metadata, "topics/"); ok {
			p.Metadata = consumerSubscription(strings.Split(topics, "+"))
		}
		list = append(list, p)
	}
	return list
}

func consumerSubscription(topics []string) []byte {
	md := kmsg.NewConsumerMemberMetadata()
	md.Version, md.Topics = 3, topics
	return md.AppendTo(nil)
}

func (w *world) cmdJoin(a *args) error {
	q := kmsg.NewPtrJoinGroupRequest()
	q.Version = int16(a.number("version", 9))
	q.Group = a.text("group", "g")
	q.MemberID = a.text("member", "")
	q.InstanceID = a.optional("instance")
	q.ProtocolType = a.text("type", "consumer")
	q.SessionTimeoutMillis = int32(a.duration("session", 10*time.Second).Milliseconds())
	q.RebalanceTimeoutMillis = int32(a.duration("rebalance", 30*time.Second).Milliseconds())
	client, host := a.client(q.InstanceID, q.MemberID)
	q.Reason = a.optional("reason")
	q.Protocols = joinProtocols(a.list("protocols", "range", "roundrobin"), client)
	for range a.number("times", 1) {
		w.request(a.text("as", ""), client, host, q)
	}
	return nil
}

func (w *world) cmdSync(a *args) error {
	q := kmsg.NewPtrSyncGroupRequest()
	q.Version = int16(a.number("version", 5))
	q.Group = a.text("group", "g")
	q.MemberID = a.text("member", "")
	q.InstanceID = a.optional("instance")
	q.Generation = int32(a.number("generation", int64(w.generation(q.Group))))
	g, _ := w.m.Group(q.Group)
	q.ProtocolType, q.Protocol = stringOr(a, "type", "consumer"), stringOr(a, "protocol", g.Protocol)
	for _, s := range a.list("assign") {
		e := kmsg.NewSyncGroupRequestGroupAssignment()
		member, assignment := cut(s)
		e.MemberID, e.MemberAssignment = member, []byte(assignment)
		q.GroupAssignment = append(q.GroupAssignment, e)
	}
	client, host := a.client(q.InstanceID, q.MemberID)
	w.request(a.text("as", ""), client, host, q)
	return nil
}

// stringOr is a nullable string: def unless given, nil if given as "none".
func stringOr(a *args, name, def string) *string {
	if a.has(name) {
		return a.optional(name)
	}
	return &def
}

func (w *world) cmdHeartbeat(a *args) error {
	q := kmsg.NewPtrHeartbeatRequest()
	q.Version = int16(a.number("version", 4))
	q.Group = a.text("group", "g")
	q.MemberID, q.InstanceID = a.text("member", ""), a.optional("instance")
	q.Generation = int32(a.number("generation", int64(w.generation(q.Group))))
	client, host := a.client(q.InstanceID, q.MemberID)
	w.request(a.text("as", ""), client, host, q)
	return nil
}

func (w *world) heartbeat(name, group, member string, instance *string, generation int32, version int16) *sent {
	q := kmsg.NewPtrHeartbeatRequest()
	q.Version, q.Group, q.MemberID, q.InstanceID, q.Generation = version, group, member, instance, generation
	return w.request(name, "client", "/127.0.0.1", q)
}

// cmdLeave reads members=(id:instance,id,:instance); a bare id has no instance id, and ":" is nobody.
func (w *world) cmdLeave(a *args) error {
	q := kmsg.NewPtrLeaveGroupRequest()
	q.Version = int16(a.number("version", 5))
	q.Group = a.text("group", "g")
	q.MemberID = a.text("member", "")
	for _, s := range a.list("members") {
		e := kmsg.NewLeaveGroupRequestMember()
		member, instance, named := strings.Cut(s, ":")
		e.MemberID, e.Reason = member, a.optional("reason")
		if named && instance != "" {
			e.InstanceID = &instance
		}
		q.Members = append(q.Members, e)
	}
	w.request(a.text("as", ""), "client", "/127.0.0.1", q)
	return nil
}

// partitionArg is one of offsets=(t/0:42,t/1:7:metadata) or partitions=(t/0,t/1).
type partitionArg struct {
	topic     string
	id        [16]byte
	partition int32
	offset    int64
	metadata  *string
}

func (w *world) partitions(list []string) ([]partitionArg, error) {
	var parsed []partitionArg
	for _, s := range list {
		where, rest := cut(s)
		topic, partition, _ := strings.Cut(where, "/")
		n, err := strconv.Atoi(partition)
		if err != nil {
			return nil, fmt.Errorf("%q: want topic/partition:offset:metadata", s)
		}
		p := partitionArg{topic: topic, partition: int32(n), id: w.m.topics[topic].id}
		if rest != "" {
			at, metadata, ok := strings.Cut(rest, ":")
			if p.offset, err = strconv.ParseInt(at, 10, 64); err != nil {
				return nil, fmt.Errorf("%q: %v", s, err)
			}
			if length, err := strconv.Atoi(strings.TrimPrefix(metadata, "len=")); strings.HasPrefix(metadata, "len=") && err == nil {
				metadata = strings.Repeat("m", length)
			}
			if ok {
				p.metadata = &metadata
			}
		}
		if id, ok := strings.CutPrefix(topic, "id"); ok {
			if n, err := strconv.Atoi(id); err == nil {
				p.id = topicID(byte(n))
			}
		}
		parsed = append(parsed, p)
	}
	return parsed, nil
}

func (w *world) cmdCommit(a *args) error {
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Version = int16(a.number("version", 9))
	q.Group = a.text("group", "g")
	q.MemberID = a.text("member", "")
	q.InstanceID = a.optional("instance")
	q.Generation = int32(a.number("generation", -1))
	q.RetentionTimeMillis = -1
	if r := a.duration("retention", -1); r >= 0 {
		q.RetentionTimeMillis = r.Milliseconds()
	}
	parsed, err := w.partitions(a.list("offsets", "t/0:42"))
	for _, p := range parsed {
		t := kmsg.NewOffsetCommitRequestTopic()
		t.Topic, t.TopicID = p.topic, p.id
		e := kmsg.NewOffsetCommitRequestTopicPartition()
		e.Partition, e.Offset, e.LeaderEpoch, e.Metadata = p.partition, p.offset, int32(a.number("epoch", -1)), p.metadata
		t.Partitions = append(t.Partitions, e)
		q.Topics = append(q.Topics, t)
	}
	client, host := a.client(q.InstanceID, q.MemberID)
	w.request(a.text("as", ""), client, host, q)
	return err
}

func (w *world) cmdTxnCommit(a *args) error {
	q := kmsg.NewPtrTxnOffsetCommitRequest()
	q.Version = int16(a.number("version", 5))
	q.Group = a.text("group", "g")
	q.MemberID = a.text("member", "")
	q.InstanceID = a.optional("instance")
	q.Generation = int32(a.number("generation", -1))
	q.TransactionalID = a.text("txn", "txn")
	q.ProducerID = a.number("producer", 1)
	q.ProducerEpoch = int16(a.number("producer-epoch", 0))
	parsed, err := w.partitions(a.list("offsets", "t/0:42"))
	for _, p := range parsed {
		t := kmsg.NewTxnOffsetCommitRequestTopic()
		t.Topic, t.TopicID = p.topic, p.id
		e := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		e.Partition, e.Offset, e.Metadata = p.partition, p.offset, p.metadata
		t.Partitions = append(t.Partitions, e)
		q.Topics = append(q.Topics, t)
	}
	client, host := a.client(q.InstanceID, q.MemberID)
	w.request(a.text("as", ""), client, host, q)
	return err
}

// cmdFetch asks for partitions=(t/0,…), or for everything. From version 8 on groups=(g,h) asks for several groups.
func (w *world) cmdFetch(a *args) error {
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Version = int16(a.number("version", 9))
	q.RequireStable = a.bool("stable")
	q.Group = a.text("group", "g")
	parsed, err := w.partitions(a.list("partitions"))
	for _, id := range a.list("groups", q.Group) {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = id
		for _, p := range parsed {
			t := kmsg.NewOffsetFetchRequestGroupTopic()
			t.Topic, t.TopicID, t.Partitions = p.topic, p.id, []int32{p.partition}
			g.Topics = append(g.Topics, t)
		}
		q.Groups = append(q.Groups, g)
	}
	for _, p := range parsed {
		t := kmsg.NewOffsetFetchRequestTopic()
		t.Topic, t.Partitions = p.topic, []int32{p.partition}
		q.Topics = append(q.Topics, t)
	}
	w.request(a.text("as", ""), "client", "/127.0.0.1", q)
	return err
}

func (w *world) cmdOffsetDelete(a *args) error {
	q := kmsg.NewPtrOffsetDeleteRequest()
	q.Group = a.text("group", "g")
	parsed, err := w.partitions(a.list("partitions"))
	for _, p := range parsed {
		t := kmsg.NewOffsetDeleteRequestTopic()
		e := kmsg.NewOffsetDeleteRequestTopicPartition()
		e.Partition = p.partition
		t.Topic, t.Partitions = p.topic, []kmsg.OffsetDeleteRequestTopicPartition{e}
		q.Topics = append(q.Topics, t)
	}
	w.request(a.text("as", ""), "client", "/127.0.0.1", q)
	return err
}

func (w *world) cmdDescribe(a *args) error {
	q := kmsg.NewPtrDescribeGroupsRequest()
	q.Version = int16(a.number("version", 5))
	q.Groups = a.list("groups", a.text("group", "g"))
	q.IncludeAuthorizedOperations = a.bool("operations")
	w.request(a.text("as", ""), "client", "/127.0.0.1", q)
	return nil
}

func (w *world) cmdList(a *args) error {
	q := kmsg.NewPtrListGroupsRequest()
	q.Version = int16(a.number("version", 5))
	q.StatesFilter, q.TypesFilter = a.list("states"), a.list("types")
	w.request(a.text("as", ""), "client", "/127.0.0.1", q)
	return nil
}

func (w *world) cmdDelete(a *args) error {
	q := kmsg.NewPtrDeleteGroupsRequest()
	q.Version = int16(a.number("version", 2))
	q.Groups = a.list("groups", a.text("group", "g"))
	w.request(a.text("as", ""), "client", "/127.0.0.1", q)
	return nil
}
