package groupdiff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A request is one request of a sequence, for both sides: it names member ids by who has them.
type request struct {
	kind     string
	version  int16
	client   string   // who sends it, and whose member id, generation and member list it has
	identity string   // current, none, old, bogus, or another client
	instance *string  // nil: dynamic
	shift    int32    // of the generation
	offers   []string // join: protocols
	metadata string   // join: what the client says besides its name
	kindOf   string   // join, sync: protocol type; "" for consumer, "null" for none
	session  int32    // join: session timeout; 0 for one that no clock ends
	with     string   // leave: a further instance id; "" for none
	of       string   // leave: the client whose member id goes with it; "" for none
	member   bool     // leave: by member id
	more     bool     // fetch, describe, delete: a group that does not exist, too; offset-delete: another topic
	types    string   // list: filter by type
	simple   bool     // commit: without any member
	topic    string
	at       int32 // partition
	offset   int64
	long     bool // commit: metadata that is too long
	all      bool // fetch: everything
	stable   bool // fetch: require_stable
	commit   bool // end-txn: commit
}

// String is the line of a trace.
func (r request) String() string {
	s := fmt.Sprintf("%s v%d %s", r.kind, r.version, r.client)
	add := func(name string, value any, show bool) {
		if show {
			s += fmt.Sprintf(" %s=%v", name, value)
		}
	}
	add("instance", text(r.instance), r.instance != nil)
	add("identity", r.identity, r.identity != current)
	add("shift", r.shift, r.shift != 0)
	add("offers", strings.Join(r.offers, "+"), r.kind == "join")
	add("metadata", r.metadata, r.metadata != "")
	add("type", r.kindOf, r.kindOf != "")
	add("session", r.session, r.session != 0)
	add("with", r.with, r.with != "")
	add("of", r.of, r.of != "")
	add("more", r.more, r.more)
	add("types", r.types, r.types != "")
	add("member", r.member, r.member)
	add("simple", r.simple, r.simple)
	add("topic", fmt.Sprintf("%s/%d", r.topic, r.at), r.topic != "")
	add("long", r.long, r.long)
	add("all", r.all, r.all)
	add("stable", r.stable, r.stable)
	add("commit", r.commit, r.kind == "end-txn")
	return s
}

// parks reports whether a request of this kind may stay without an answer.
func (r request) parks() bool { return r.kind == "join" || r.kind == "sync" }

// Identities of a request.
const (
	current = "current"
	none    = "none"
	old     = "old"
	bogus   = "bogus"
)

// timeoutMillis is long enough that no clock ends anything.
const timeoutMillis = 300_000

// memberID is the member id that a request carries on one side.
func (r request) memberID(n *names) string {
	switch r.identity {
	case none:
		return ""
	case current:
		return n.current[r.client]
	case old:
		return n.old[r.client]
	case bogus:
		return "bogus"
	}
	return n.current[r.identity]
}

// build makes the request for one side.
func (r request) build(group string, n *names) kmsg.Request {
	id, generation := r.memberID(n), n.generation[r.client]+r.shift
	switch r.kind {
	case "join":
		return r.join(group, id)
	case "sync":
		return r.sync(group, id, generation, n)
	case "heartbeat":
		q := kmsg.NewPtrHeartbeatRequest()
		q.Version, q.Group, q.MemberID, q.InstanceID, q.Generation = r.version, group, id, r.instance, generation
		return q
	case "leave":
		return r.leave(group, id, n)
	case "commit":
		return r.offsetCommit(group, id, generation, n)
	case "txn-commit":
		return r.txnCommit(group, id, generation, n)
	case "fetch":
		return r.fetch(group, n)
	case "offset-delete":
		q := kmsg.NewPtrOffsetDeleteRequest()
		q.Group = group
		for _, topic := range r.topics() {
			q.Topics = append(q.Topics, kmsg.OffsetDeleteRequestTopic{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: r.at}}})
		}
		if !r.more {
			q.Topics = q.Topics[len(q.Topics)-1:]
		}
		return q
	case "describe":
		q := kmsg.NewPtrDescribeGroupsRequest()
		q.Version, q.Groups, q.IncludeAuthorizedOperations = r.version, r.groups(group), r.all
		return q
	case "list":
		q := kmsg.NewPtrListGroupsRequest()
		q.Version = r.version
		if r.all {
			q.StatesFilter = []string{"stable", "Empty"}
		}
		if r.types != "" {
			q.TypesFilter = []string{r.types}
		}
		return q
	case "delete":
		q := kmsg.NewPtrDeleteGroupsRequest()
		q.Version, q.Groups = r.version, r.groups(group)
		return q
	}
	panic("groupdiff: no request kind " + r.kind)
}

// groups are those that a request asks about.
func (r request) groups(group string) []string {
	if r.more {
		return []string{group + absentSuffix, group}
	}
	return []string{group}
}

// absentSuffix makes of a group's name that of one which nobody has used.
const absentSuffix = "-absent"

// protocolType is what a join or sync names.
func (r request) protocolType() *string {
	switch r.kindOf {
	case "":
		return kmsg.StringPtr("consumer")
	case "null":
		return nil
	}
	return &r.kindOf
}

func (r request) join(group, id string) kmsg.Request {
	q := kmsg.NewPtrJoinGroupRequest()
	q.Version, q.Group, q.MemberID, q.InstanceID = r.version, group, id, r.instance
	if t := r.protocolType(); t != nil {
		q.ProtocolType = *t
	}
	q.SessionTimeoutMillis, q.RebalanceTimeoutMillis, q.Reason = timeoutMillis, timeoutMillis, kmsg.StringPtr("as told")
	if r.session != 0 {
		q.SessionTimeoutMillis = r.session
	}
	for _, name := range r.offers {
		metadata := kmsg.NewConsumerMemberMetadata()
		metadata.Topics, metadata.UserData = []string{topicName}, []byte(r.client+r.metadata)
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = name, metadata.AppendTo(nil)
		q.Protocols = append(q.Protocols, p)
	}
	return q
}

// sync assigns every member its name, if the client leads.
func (r request) sync(group, id string, generation int32, n *names) kmsg.Request {
	q := kmsg.NewPtrSyncGroupRequest()
	q.Version, q.Group, q.MemberID, q.InstanceID, q.Generation = r.version, group, id, r.instance, generation
	q.ProtocolType, q.Protocol = r.protocolType(), kmsg.StringPtr("range")
	if len(r.offers) > 0 {
		q.Protocol = &r.offers[0]
	}
	for _, member := range n.list[r.client] {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = member, []byte(n.rename(member))
		q.GroupAssignment = append(q.GroupAssignment, a)
	}
	return q
}

func (r request) leave(group, id string, n *names) kmsg.Request {
	q := kmsg.NewPtrLeaveGroupRequest()
	q.Version, q.Group, q.MemberID = r.version, group, id
	first := kmsg.NewLeaveGroupRequestMember()
	first.InstanceID = r.instance
	if r.member {
		first.MemberID = id
	}
	q.Members = append(q.Members, first)
	if r.with != "" {
		second := kmsg.NewLeaveGroupRequestMember()
		second.InstanceID, second.MemberID, second.Reason = &r.with, n.current[r.of], kmsg.StringPtr("as told")
		q.Members = append(q.Members, second)
	}
	return q
}

// topics are those that a commit or a fetch names.
func (r request) topics() []string { return slices.Compact([]string{topicName, r.topic}) }

func (r request) offsetMetadata() *string {
	if r.long {
		return kmsg.StringPtr(strings.Repeat("m", 5000))
	}
	return nil
}

func (r request) offsetCommit(group, id string, generation int32, n *names) kmsg.Request {
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Version, q.Group, q.Generation, q.RetentionTimeMillis = r.version, group, -1, -1
	if !r.simple {
		q.MemberID, q.InstanceID, q.Generation = id, r.instance, generation
	}
	for _, topic := range r.topics() {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = r.at, r.offset, 0, r.offsetMetadata()
		t := kmsg.NewOffsetCommitRequestTopic()
		t.Topic, t.TopicID, t.Partitions = topic, n.topicID(topic), []kmsg.OffsetCommitRequestTopicPartition{p}
		q.Topics = append(q.Topics, t)
	}
	return q
}

func (r request) txnCommit(group, id string, generation int32, n *names) kmsg.Request {
	q := kmsg.NewPtrTxnOffsetCommitRequest()
	q.Version, q.Group, q.Generation = r.version, group, -1
	q.TransactionalID, q.ProducerID, q.ProducerEpoch = group, n.producer.id, n.producer.epoch
	if !r.simple {
		q.MemberID, q.InstanceID, q.Generation = id, r.instance, generation
	}
	for _, topic := range r.topics() {
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = r.at, r.offset, 0, r.offsetMetadata()
		t := kmsg.NewTxnOffsetCommitRequestTopic()
		t.Topic, t.TopicID, t.Partitions = topic, n.topicID(topic), []kmsg.TxnOffsetCommitRequestTopicPartition{p}
		q.Topics = append(q.Topics, t)
	}
	return q
}

func (r request) fetch(group string, n *names) kmsg.Request {
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Version, q.Group, q.RequireStable = r.version, group, r.stable
	var topics []kmsg.OffsetFetchRequestGroupTopic
	q.Topics = nil
	if !r.all {
		for _, topic := range []string{topicName, absentTopic} {
			q.Topics = append(q.Topics, kmsg.OffsetFetchRequestTopic{Topic: topic, Partitions: []int32{0, 1}})
			topics = append(topics, kmsg.OffsetFetchRequestGroupTopic{Topic: topic, TopicID: n.topicID(topic), Partitions: []int32{0, 1}})
		}
	}
	for _, name := range r.groups(group) {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group, g.Topics = name, topics
		q.Groups = append(q.Groups, g)
	}
	return q
}
