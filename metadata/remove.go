package metadata

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A MemberName names a member of a group as LeaveGroup does: a static member by its instance id alone, a dynamic one by its
// member id alone. With both, the coordinator would check the pair instead of removing the instance.
type MemberName struct {
	InstanceID string
	MemberID   string // of a dynamic member
}

// String is the id.
func (m MemberName) String() string {
	if m.InstanceID != "" {
		return m.InstanceID
	}
	return m.MemberID
}

// A Removal is what became of one member.
type Removal struct {
	MemberName
	// Gone says that the member was not in the group, for example because its session had ended: what was asked for is so.
	Gone bool
	Err  error // the coordinator's refusal; nil if the member was removed or was gone
}

// maxReason is where Kafka cuts the reason of a leave.
const maxReason = 255

// RemoveInstances is RemoveMembers for static members.
func RemoveInstances(ctx context.Context, client kmsg.Requestor, group, reason string, ids []string) ([]Removal, error) {
	members := make([]MemberName, 0, len(ids))
	for _, id := range ids {
		members = append(members, MemberName{InstanceID: id})
	}
	return RemoveMembers(ctx, client, group, reason, members)
}

// RemoveMembers removes members in one LeaveGroup, so that the group rebalances once. A member whose process still runs
// joins again as a new one, so stop it first. Without members it does nothing.
func RemoveMembers(ctx context.Context, client kmsg.Requestor, group, reason string, members []MemberName) ([]Removal, error) {
	if len(members) == 0 {
		return nil, nil
	}
	if runes := []rune(reason); len(runes) > maxReason {
		reason = string(runes[:maxReason])
	}
	request := kmsg.NewPtrLeaveGroupRequest()
	request.Group = group
	for _, m := range members {
		leaving := kmsg.NewLeaveGroupRequestMember()
		leaving.MemberID, leaving.Reason = m.MemberID, &reason
		if m.InstanceID != "" {
			leaving.MemberID, leaving.InstanceID = "", &m.InstanceID
		}
		request.Members = append(request.Members, leaving)
	}
	answer, err := request.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(answer.ErrorCode)
	}
	if err != nil {
		return nil, fmt.Errorf("remove members from group %q: %w", group, err)
	}
	return removals(members, answer), nil
}

// removals reads what became of each member, in their order.
func removals(members []MemberName, answer *kmsg.LeaveGroupResponse) []Removal {
	codes := map[MemberName]int16{}
	for _, m := range answer.Members {
		if m.InstanceID != nil {
			codes[MemberName{InstanceID: *m.InstanceID}] = m.ErrorCode
		} else {
			codes[MemberName{MemberID: m.MemberID}] = m.ErrorCode
		}
	}
	list := make([]Removal, 0, len(members))
	for _, m := range members {
		r := Removal{MemberName: m}
		code, ok := codes[m]
		switch err := kerr.ErrorForCode(code); {
		case !ok:
			r.Err = errors.New("the coordinator's answer does not name it")
		case errors.Is(err, kerr.UnknownMemberID):
			r.Gone = true
		default:
			r.Err = err
		}
		list = append(list, r)
	}
	return list
}

// StaticInstances maps the instance ids in a group to the hosts of their clients. A group that does not exist has none.
func StaticInstances(ctx context.Context, adm *kadm.Client, group string) (map[string]string, error) {
	d, err := DescribeGroup(ctx, adm, group)
	if err != nil {
		return nil, err
	}
	hosts := map[string]string{}
	for _, m := range d.Members {
		if m.InstanceID != nil {
			hosts[*m.InstanceID] = m.ClientHost
		}
	}
	return hosts, nil
}
