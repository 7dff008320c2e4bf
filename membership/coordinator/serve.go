package coordinator

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// serve sends a request to its file.
func (m *Machine) serve(r Request) {
	switch q := r.Req.(type) {
	case *kmsg.HeartbeatRequest:
		m.onHeartbeat(r, q)
	case *kmsg.JoinGroupRequest:
		m.onJoin(r, q)
	case *kmsg.SyncGroupRequest:
		m.onSync(r, q)
	case *kmsg.LeaveGroupRequest:
		m.onLeave(r, q)
	case *kmsg.OffsetCommitRequest:
		m.onOffsetCommit(r, q)
	case *kmsg.TxnOffsetCommitRequest:
		m.onTxnOffsetCommit(r, q)
	case *kmsg.OffsetFetchRequest:
		m.onOffsetFetch(r, q)
	case *kmsg.OffsetDeleteRequest:
		m.onOffsetDelete(r, q)
	case *kmsg.DescribeGroupsRequest:
		m.onDescribe(r, q)
	case *kmsg.ListGroupsRequest:
		m.onList(r, q)
	case *kmsg.DeleteGroupsRequest:
		m.onDelete(r, q)
	default:
		panic(fmt.Sprintf("coordinator: %s is not a group request; ask Handles before routing one here", kmsg.NameForKey(r.Req.Key())))
	}
}

// Handles reports whether a kind of request is answered here. FindCoordinator is not: whoever knows the brokers
// answers it, with [PartitionFor].
func Handles(key int16) bool {
	switch kmsg.Key(key) {
	case kmsg.Heartbeat, kmsg.JoinGroup, kmsg.SyncGroup, kmsg.LeaveGroup, kmsg.OffsetCommit, kmsg.TxnOffsetCommit,
		kmsg.OffsetFetch, kmsg.OffsetDelete, kmsg.DescribeGroups, kmsg.ListGroups, kmsg.DeleteGroups:
		return true
	}
	return false
}
