package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/integration/cluster/admin"
	"github.com/millrace-io/millrace/metadata"
)

// How a rebalance was brought about.
const (
	howCoordinator = "forced by the coordinator"
	howLeave       = "emulated: one LeaveGroup removed the named members"
	howPending     = "emulated: an id that left before it joined"
)

// forceFlags are the flags of force-rebalance.
type forceFlags struct {
	operateFlags
	deadline time.Duration
	ids      string
}

// forceReport is the output.
type forceReport struct {
	Group   string   `json:"group"`
	How     string   `json:"how"`
	Before  *int32   `json:"generation_before,omitempty"` // brokers do not tell
	After   *int32   `json:"generation_after,omitempty"`
	Removed []string `json:"removed"`
	Kept    []string `json:"kept,omitempty"` // told by the coordinator only
}

// runForceRebalance makes a group of static members rebalance now.
func runForceRebalance(ctx context.Context, t *terminal, args []string) error {
	var f forceFlags
	flags := t.flags(operateSynopsis+" [-deadline d] [-instance-ids a,b]",
		"Makes a group of static members rebalance now, and says how it was done.\n\n"+
			"With -admin the coordinator does it: whoever does not rejoin within -deadline is out, and exactly one generation passes.\n"+
			"Brokers have no such request, so with -brokers it is emulated: -instance-ids names members that are gone for good, which are\n"+
			"removed in one LeaveGroup; without, the group is only made to rebalance, which coordinators from Kafka 4.0 on do when an id\n"+
			"leaves that has not joined yet, and members that are away stay until their session or the rebalance timeout ends.\n\n"+
			"Refused for a group that is rebalancing, that has dynamic members, or that has none.",
		formText, formJSON)
	f.register(flags)
	flags.DurationVar(&f.deadline, "deadline", 0, "how long members have to rejoin (-admin only); 0, or more than that, is their rebalance timeout")
	flags.StringVar(&f.ids, "instance-ids", "", "`ids` of members that are gone, separated by commas (-brokers only)")
	if err := t.parse(flags, args); err != nil {
		return err
	}
	if err := f.check(t); err != nil {
		return err
	}
	if f.admin != "" {
		return f.force(ctx, t)
	}
	return f.withClient(ctx, func(ctx context.Context, client *kgo.Client) error { return f.emulate(ctx, t, client) })
}

func (f *forceFlags) check(t *terminal) error {
	switch {
	case f.deadline < 0:
		return usagef("-deadline is %v: want 0 or more", f.deadline)
	case f.admin != "" && f.ids != "":
		return usagef("-instance-ids goes without -admin: the coordinator sees who is gone")
	case f.admin == "" && f.deadline > 0:
		return usagef("-deadline needs -admin: brokers have none")
	}
	return f.operateFlags.check(t)
}

// force asks the coordinator. The time limit is that of the answer, which comes when the deadline is over at the latest.
func (f *forceFlags) force(ctx context.Context, t *terminal) error {
	return f.withAdmin(ctx, func(ctx context.Context, c *admin.Client) error {
		change, err := c.ForceRebalance(ctx, f.group, admin.Force{Deadline: admin.Duration(f.deadline)})
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("the rebalance is under way and not complete after %v (-timeout): members are still expected", f.timeout)
		}
		if err != nil {
			return err
		}
		return f.print(t, forceReport{f.group, howCoordinator, &change.Before, &change.After, change.Removed, change.Kept})
	})
}

// emulate does what can be done with the requests that a broker has.
func (f *forceFlags) emulate(ctx context.Context, t *terminal, client *kgo.Client) error {
	d, err := describeGroup(ctx, client, f.group)
	if err == nil {
		err = refuseForce(d)
	}
	if err != nil {
		return err
	}
	report := forceReport{Group: f.group, How: howPending, Removed: []string{}}
	if ids := splitIDs(f.ids); len(ids) > 0 {
		report.How = howLeave
		report.Removed, err = removeGone(ctx, client, f.group, ids)
	} else {
		err = leaveBeforeJoin(ctx, client, d)
	}
	if err != nil {
		return err
	}
	return f.print(t, report)
}

// refuseForce makes the refusals of the coordinator from what DescribeGroups tells. The group may change in between:
// then the requests that follow fail, or the rebalance is the one that was under way.
func refuseForce(d kadm.DescribedGroup) error {
	refuse := func(why *kerr.Error, text string) error {
		return fmt.Errorf("group %q: %s: %w", d.Group, text, why)
	}
	switch {
	case d.State == "PreparingRebalance" || d.State == "CompletingRebalance":
		return refuse(kerr.RebalanceInProgress, "it is rebalancing already")
	case len(d.Members) == 0:
		return refuse(kerr.GroupIDNotFound, "it has no members")
	}
	for _, m := range d.Members {
		if m.InstanceID == nil {
			return refuse(kerr.InvalidRequest, "it has dynamic members, the first is "+m.MemberID)
		}
	}
	return nil
}

func removeGone(ctx context.Context, client *kgo.Client, group string, ids []string) (removed []string, err error) {
	removals, err := metadata.RemoveInstances(ctx, client, group, "forced rebalance", ids)
	if err != nil {
		return nil, err
	}
	for _, r := range removals {
		switch {
		case r.Err != nil:
			return removed, fmt.Errorf("remove %s: %w", r.InstanceID, r.Err)
		case !r.Gone:
			removed = append(removed, r.InstanceID)
		}
	}
	if len(removed) == 0 {
		return nil, fmt.Errorf("group %q: none of %s is in the group, so nothing was done", group, orDash(ids))
	}
	return removed, nil
}

// leaveBeforeJoin asks for a member id and gives it back. Kafka's coordinator from 4.0 on then rebalances the group, though
// nothing has changed for its members.
func leaveBeforeJoin(ctx context.Context, client *kgo.Client, d kadm.DescribedGroup) error {
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType = d.Group, d.ProtocolType
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 10_000, 10_000
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = d.Protocol
	join.Protocols = append(join.Protocols, protocol)
	joined, err := join.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("ask for a member id: %w", err)
	}
	if err := kerr.ErrorForCode(joined.ErrorCode); !errors.Is(err, kerr.MemberIDRequired) {
		return fmt.Errorf("ask for a member id: the coordinator answers %v and not MEMBER_ID_REQUIRED", err)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = d.Group
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID, member.Reason = joined.MemberID, kmsg.StringPtr("forced rebalance")
	leave.Members = append(leave.Members, member)
	left, err := leave.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(left.ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("give the member id back: %w", err)
	}
	return seeRebalance(ctx, client, d)
}

// seePatience is how long a rebalance may take to show. Members learn of it with their next heartbeat only, so that it
// cannot be over by then.
const seePatience = 2 * time.Second

// seeRebalance returns when the group is rebalancing, or says that it is not.
func seeRebalance(ctx context.Context, client *kgo.Client, before kadm.DescribedGroup) error {
	deadline := time.NewTimer(seePatience)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		d, err := describeGroup(ctx, client, before.Group)
		if err != nil || d.State != before.State {
			return err
		}
		select {
		case <-again.C:
		case <-deadline.C:
			return fmt.Errorf("group %q does not rebalance: its coordinator is not one of Kafka 4.0 or later; name the members that are gone with -instance-ids", before.Group)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *forceFlags) print(t *terminal, r forceReport) error {
	if t.form == formJSON {
		return t.json(r)
	}
	fmt.Fprintf(t.out, "group %s rebalances (%s)\n", r.Group, r.How)
	if r.After != nil {
		fmt.Fprintf(t.out, "generation %d, was %d\nkept: %s\n", *r.After, *r.Before, orDash(r.Kept))
	}
	_, err := fmt.Fprintf(t.out, "removed: %s\n", orDash(r.Removed))
	return err
}
