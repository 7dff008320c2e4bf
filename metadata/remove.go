package metadata

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// A Removal is what became of one instance id.
type Removal struct {
	InstanceID string
	// Gone says that the id was not in the group, for example because its session had ended: what was asked for is so.
	Gone bool
	Err  error // the coordinator's refusal; nil if the member was removed or was gone
}

// maxReason is where Kafka cuts the reason of a leave.
const maxReason = 255

// RemoveInstances removes static members by their instance ids in one LeaveGroup, so that the group rebalances once. The
// member ids stay empty: the coordinator then looks for the instance id alone. A member whose process still runs joins
// again as a new one, so stop it first. Without ids it does nothing.
func RemoveInstances(ctx context.Context, adm *kadm.Client, group, reason string, ids []string) ([]Removal, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if runes := []rune(reason); len(runes) > maxReason {
		reason = string(runes[:maxReason])
	}
	answers, err := adm.LeaveGroup(ctx, kadm.LeaveGroup(group).Reason(reason).InstanceIDs(ids...))
	if err != nil {
		return nil, fmt.Errorf("remove members from group %q: %w", group, err)
	}
	removals := make([]Removal, 0, len(ids))
	for _, id := range ids {
		r := Removal{InstanceID: id}
		switch answer, ok := answers[id]; {
		case !ok:
			r.Err = errors.New("the coordinator's answer does not name it")
		case errors.Is(answer.Err, kerr.UnknownMemberID):
			r.Gone = true
		default:
			r.Err = answer.Err
		}
		removals = append(removals, r)
	}
	return removals, nil
}

// StaticInstances maps the instance ids in a group to the hosts of their clients. A group that does not exist has none.
func StaticInstances(ctx context.Context, adm *kadm.Client, group string) (map[string]string, error) {
	described, err := adm.DescribeGroups(ctx, group)
	if err != nil {
		return nil, fmt.Errorf("describe group %q: %w", group, err)
	}
	d := described[group]
	if d.Err != nil && !errors.Is(d.Err, kerr.GroupIDNotFound) {
		return nil, fmt.Errorf("describe group %q: %w", group, d.Err)
	}
	hosts := map[string]string{}
	for _, m := range d.Members {
		if m.InstanceID != nil {
			hosts[*m.InstanceID] = m.ClientHost
		}
	}
	return hosts, nil
}
