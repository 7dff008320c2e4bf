package classic

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/membership"
)

// A LeaveMode says what becomes of the member's place when its driver closes.
type LeaveMode int

const (
	// LeaveDefault: a dynamic member leaves, a static one stays until its session times out.
	LeaveDefault LeaveMode = iota
	// Leave frees the member's tasks at once.
	Leave
	// Remain keeps the place until the session times out.
	Remain
)

func (m LeaveMode) leaves(instanceID string) bool {
	return m == Leave || m == LeaveDefault && instanceID == ""
}

// A Place is what a member has in its group. A static member is named by both ids, so that it can never give up the place
// of who took over from it; with an empty member id whoever has the instance id now is removed.
type Place struct{ MemberID, InstanceID string }

// LeaveGroup gives up places in one request, so that the group rebalances once. A place that is gone already is as good.
// Errors are joined, one for each place: [*membership.FencedError] where another process has the instance id by now.
// Without places it does nothing.
func LeaveGroup(ctx context.Context, client *kgo.Client, group, why string, places ...Place) error {
	if len(places) == 0 {
		return nil // an empty request would be answered, but means nothing
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	for _, p := range places {
		member := kmsg.NewLeaveGroupRequestMember()
		member.MemberID, member.Reason = p.MemberID, reason(why)
		if p.InstanceID != "" {
			member.InstanceID = kmsg.StringPtr(p.InstanceID)
		}
		req.Members = append(req.Members, member)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("group %q: LeaveGroup of %d members: %w", group, len(places), err)
	}
	var errs []error
	for i, p := range places {
		code := resp.ErrorCode
		if code == 0 && i < len(resp.Members) { // in the order of the request
			code = resp.Members[i].ErrorCode
		}
		errs = append(errs, p.refused(group, code))
	}
	return errors.Join(errs...)
}

// refused is the error of a place that the coordinator did not let go; nil if it is gone.
func (p Place) refused(group string, code int16) error {
	switch membership.Code(code) {
	case membership.None, membership.UnknownMemberID:
		return nil
	case membership.FencedInstanceID:
		return &membership.FencedError{InstanceID: p.InstanceID, Group: group, MemberID: p.MemberID, Request: membership.LeaveGroup}
	default:
		return fmt.Errorf("group %q: LeaveGroup of member %q, instance id %q: %w", group, p.MemberID, p.InstanceID, kerr.ErrorForCode(code))
	}
}
