package groupdiff

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// names is what the clients of one side know, and how its member ids are renamed.
type names struct {
	current, old map[string]string   // member ids by client
	generation   map[string]int32    // by client
	list         map[string][]string // member ids that a client has to assign to, by client
	alias        map[string]string   // member id -> prefix#n
	count        map[string]int      // member ids that were told, by prefix
	topics       map[[16]byte]string // names of topic ids
	producer     producer            // of the sequence's transactions
}

// producer is what a side's transaction coordinator handed out.
type producer struct {
	id    int64
	epoch int16
}

func newNames() *names {
	return &names{
		current: map[string]string{}, old: map[string]string{}, generation: map[string]int32{}, list: map[string][]string{},
		alias: map[string]string{}, count: map[string]int{}, topics: map[[16]byte]string{},
	}
}

// uuidLength is that of "-" and a UUID, with which both coordinators end a member id.
const uuidLength = 37

// rename gives a member id a name that does not depend on chance: its prefix, and its number among those that clients
// were told. One that no client was told yet, because its Join waits, has no number. Other texts stay.
func (n *names) rename(id string) string {
	if alias, ok := n.alias[id]; ok {
		return alias
	}
	if prefix, ok := prefixOf(id); ok {
		return prefix + "#?"
	}
	return id
}

func prefixOf(id string) (string, bool) {
	if len(id) <= uuidLength || strings.Count(id[len(id)-uuidLength:], "-") != 5 {
		return "", false
	}
	return id[:len(id)-uuidLength], true
}

// meet numbers the member id that an answer gives to its own client.
func (n *names) meet(resp kmsg.Response) {
	join, ok := resp.(*kmsg.JoinGroupResponse)
	if !ok || n.alias[join.MemberID] != "" {
		return
	}
	if prefix, ok := prefixOf(join.MemberID); ok {
		n.count[prefix]++
		n.alias[join.MemberID] = fmt.Sprintf("%s#%d", prefix, n.count[prefix])
	}
}

// topic names a topic that an answer names by name or by id.
func (n *names) topic(name string, id [16]byte) string {
	if name != "" {
		return name
	}
	if name, ok := n.topics[id]; ok {
		return name
	}
	return "unknown id"
}

// learn takes from an answer what its client learns.
func (n *names) learn(client string, resp kmsg.Response) {
	join, ok := resp.(*kmsg.JoinGroupResponse)
	if !ok || join.MemberID == "" || join.ErrorCode != 0 && join.ErrorCode != memberIDRequired {
		return
	}
	if was := n.current[client]; was != "" && was != join.MemberID {
		n.old[client] = was
	}
	n.current[client] = join.MemberID
	if join.ErrorCode != 0 {
		return
	}
	n.generation[client] = join.Generation
	n.list[client] = nil
	for _, m := range join.Members {
		n.list[client] = append(n.list[client], m.MemberID)
	}
}

const memberIDRequired = 79

// topicID is the id of a topic, or one that nobody has.
func (n *names) topicID(topic string) [16]byte {
	for id, name := range n.topics {
		if name == topic {
			return id
		}
	}
	return [16]byte{15: 1}
}
