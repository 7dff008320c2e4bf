package classic

import (
	"context"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/codec"
)

// maxReason is where Kafka's clients cut the reason of a join or leave.
const maxReason = 255

func (d *Driver) joinGroup(ctx context.Context, a membership.SendJoin) (membership.Input, error) {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group = d.cfg.Group
	req.SessionTimeoutMillis = int32(d.cfg.SessionTimeout.Milliseconds())
	req.RebalanceTimeoutMillis = int32(d.cfg.RebalanceTimeout.Milliseconds())
	req.MemberID, req.InstanceID = a.MemberID, d.cfg.instance()
	req.ProtocolType = codec.ProtocolType
	req.Reason = reason(a.Reason)
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = codec.ProtocolName, a.Metadata
	req.Protocols = append(req.Protocols, protocol)

	resp, err := req.RequestWith(ctx, d.client)
	if err != nil {
		return nil, err
	}
	in := membership.Joined{
		Seq: a.Seq, Code: membership.Code(resp.ErrorCode), MemberID: resp.MemberID, LeaderID: resp.LeaderID,
		Generation: resp.Generation, Skip: resp.SkipAssignment,
	}
	if d.cfg.InstanceID != "" && resp.Version < minVersions[0].need {
		in.Code = membership.UnsupportedVersion // the coordinator never saw the instance id
	}
	if in.Code == membership.InvalidSessionTimeout {
		d.boundsFound <- d.sessionBounds(ctx)
	}
	for _, m := range resp.Members {
		member := membership.JoinedMember{ID: m.MemberID, Metadata: m.ProtocolMetadata}
		if m.InstanceID != nil {
			member.InstanceID = *m.InstanceID
		}
		in.Members = append(in.Members, member)
	}
	return in, nil
}

func reason(s string) *string {
	if len(s) > maxReason {
		s = s[:maxReason]
	}
	return &s
}

func (d *Driver) syncGroup(ctx context.Context, a membership.SendSync) (membership.Input, error) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.Generation = d.cfg.Group, a.Generation
	req.MemberID, req.InstanceID = a.MemberID, d.cfg.instance()
	req.ProtocolType, req.Protocol = kmsg.StringPtr(codec.ProtocolType), kmsg.StringPtr(codec.ProtocolName)
	for _, g := range a.Grants {
		grant := kmsg.NewSyncGroupRequestGroupAssignment()
		grant.MemberID, grant.MemberAssignment = g.MemberID, g.Bytes
		req.GroupAssignment = append(req.GroupAssignment, grant)
	}
	resp, err := req.RequestWith(ctx, d.client)
	if err != nil {
		return nil, err
	}
	return membership.Synced{Seq: a.Seq, Code: membership.Code(resp.ErrorCode), Assignment: resp.MemberAssignment}, nil
}

func (d *Driver) heartbeat(ctx context.Context, a membership.SendHeartbeat) (membership.Input, error) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.Generation = d.cfg.Group, a.Generation
	req.MemberID, req.InstanceID = a.MemberID, d.cfg.instance()
	resp, err := req.RequestWith(ctx, d.client)
	if err != nil {
		return nil, err
	}
	return membership.HeartbeatAnswered{Seq: a.Seq, Code: membership.Code(resp.ErrorCode)}, nil
}

// sessionBounds asks the brokers for the bounds of session timeouts; zeros if they do not tell.
func (d *Driver) sessionBounds(ctx context.Context) (bounds [2]time.Duration) {
	names := [2]string{"group.min.session.timeout.ms", "group.max.session.timeout.ms"}
	req := kmsg.NewPtrDescribeConfigsRequest()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType = kmsg.ConfigResourceTypeBroker
	resource.ResourceName = strconv.Itoa(int(d.facts.coordinator))
	resource.ConfigNames = names[:]
	req.Resources = append(req.Resources, resource)
	resp, err := req.RequestWith(ctx, d.client)
	if err != nil {
		return bounds // the error that is being explained matters more than this one
	}
	for _, r := range resp.Resources {
		for _, c := range r.Configs {
			for i, name := range names {
				if c.Name == name && c.Value != nil {
					bounds[i] = millis(*c.Value)
				}
			}
		}
	}
	return bounds
}

func millis(s string) time.Duration {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}
