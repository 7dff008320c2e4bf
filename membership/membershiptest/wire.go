package membershiptest

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/codec"
)

var errCut = errors.New("the network is cut")

// instance is the node's instance id as requests carry it.
func (n *node) instance() *string {
	if n.Dynamic {
		return nil
	}
	return kmsg.StringPtr(membership.ConsumerClientID(n.Name, 1))
}

func (n *node) sendJoin(a membership.SendJoin) {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = n.JoinVersion
	req.Group, req.MemberID, req.InstanceID = Group, a.MemberID, n.instance()
	req.SessionTimeoutMillis = int32(n.SessionTimeout.Milliseconds())
	req.RebalanceTimeoutMillis = int32(n.RebalanceTimeout.Milliseconds())
	req.ProtocolType = codec.ProtocolType
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = codec.ProtocolName, a.Metadata
	req.Protocols = append(req.Protocols, p)
	n.send(a.Seq, "join", req, nil)
}

func (n *node) sendSync(a membership.SendSync) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version = 5
	req.Group, req.MemberID, req.InstanceID, req.Generation = Group, a.MemberID, n.instance(), a.Generation
	req.ProtocolType, req.Protocol = kmsg.StringPtr(codec.ProtocolType), kmsg.StringPtr(codec.ProtocolName)
	for _, g := range a.Grants {
		r := kmsg.NewSyncGroupRequestGroupAssignment()
		r.MemberID, r.MemberAssignment = g.MemberID, g.Bytes
		req.GroupAssignment = append(req.GroupAssignment, r)
	}
	n.send(a.Seq, "join", req, nil)
}

func (n *node) sendHeartbeat(a membership.SendHeartbeat) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version = 4
	req.Group, req.MemberID, req.InstanceID, req.Generation = Group, a.MemberID, n.instance(), a.Generation
	n.send(a.Seq, "other", req, nil)
}

func (n *node) sendLeave(a membership.SendLeave) {
	n.send(0, "other", leaveRequest(a.MemberID, n.instance()), n.ignore)
}

func leaveRequest(memberID string, instanceID *string) *kmsg.LeaveGroupRequest {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version = 5
	req.Group = Group
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID, m.InstanceID = memberID, instanceID
	req.Members = append(req.Members, m)
	return req
}

func (n *node) ignore(kmsg.Response) {}

// commit sends an OffsetCommit with the token that the node has now and reports the answer.
func (n *node) commit() {
	token, ok := n.token()
	if !ok {
		n.env.log("%s: has no commit token", n.name)
		return
	}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version = 9
	req.Group, req.MemberID, req.InstanceID, req.Generation = Group, token.MemberID, n.instance(), token.Generation
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = "in"
	t.Partitions = append(t.Partitions, kmsg.NewOffsetCommitRequestTopicPartition())
	req.Topics = append(req.Topics, t)
	n.send(0, "other", req, func(resp kmsg.Response) {
		code := membership.Code(resp.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode)
		n.env.log("%s: commit as %q in generation %d: %v", n.name, token.MemberID, token.Generation, code)
		if code != membership.None {
			n.step(membership.CommitRefused{Token: token, Request: membership.OffsetCommit, Code: code})
		}
	})
}

// inputOf turns an answer of the coordinator into an input of the member.
func inputOf(seq uint64, resp kmsg.Response) membership.Input {
	switch r := resp.(type) {
	case *kmsg.JoinGroupResponse:
		in := membership.Joined{
			Seq: seq, Code: membership.Code(r.ErrorCode), MemberID: r.MemberID, LeaderID: r.LeaderID,
			Generation: r.Generation, Skip: r.SkipAssignment,
		}
		for _, m := range r.Members {
			j := membership.JoinedMember{ID: m.MemberID, Metadata: m.ProtocolMetadata}
			if m.InstanceID != nil {
				j.InstanceID = *m.InstanceID
			}
			in.Members = append(in.Members, j)
		}
		return in
	case *kmsg.SyncGroupResponse:
		return membership.Synced{Seq: seq, Code: membership.Code(r.ErrorCode), Assignment: r.MemberAssignment}
	case *kmsg.HeartbeatResponse:
		return membership.HeartbeatAnswered{Seq: seq, Code: membership.Code(r.ErrorCode)}
	default:
		panic(fmt.Sprintf("membershiptest: no input for %T", resp))
	}
}
