package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/metadata"
)

// What became of a member.
const (
	resultRemoved     = "removed"
	resultWouldRemove = "would remove"
	resultGone        = "already gone" // not in the group, for example because its session ended: what was asked for is so
	resultFailed      = "failed"
)

// removal is the outcome for one member: a static one has an instance id, a dynamic one a member id.
type removal struct {
	InstanceID string `json:"instance_id,omitempty"`
	MemberID   string `json:"member_id,omitempty"`
	Kind       string `json:"kind"` // static or dynamic
	ClientHost string `json:"client_host,omitempty"`
	Result     string `json:"result"`
	Error      string `json:"error,omitempty"`
}

// removalReport is the JSON form of the output.
type removalReport struct {
	Group   string    `json:"group"`
	DryRun  bool      `json:"dry_run"`
	Results []removal `json:"results"`
}

// removeFlags are the flags of remove-members.
type removeFlags struct {
	brokerFlags
	all    bool
	ids    string
	from   string
	reason string
	dryRun bool
}

// runRemoveMembers removes members in one batch, so that the group rebalances once.
func runRemoveMembers(ctx context.Context, t *terminal, args []string) error {
	var f removeFlags
	flags := t.flags("-brokers host:port,… -group g (-instance-ids a,b | -instance-ids-from file|- | -all) [-reason text] [-dry-run]",
		"Removes static members that will not come back, so that their tasks move at once instead of at the end of their session.\n"+
			"All are removed in one LeaveGroup, so that the group rebalances once. Stop the processes first: a member whose process\n"+
			"still runs joins again as a new one.\n\n"+
			"-all removes every member of the group, as RemoveMembersFromConsumerGroupOptions without members does in Kafka's Admin:\n"+
			"static ones by their instance ids, dynamic ones, which have none, by their member ids.\n\n"+
			"Exit status 1 if any removal failed. An id that is not in the group is already gone, which is no failure; a group that does\n"+
			"not exist is one. On secured brokers the command needs the operation READ on the group, with -dry-run DESCRIBE.",
		formText, formJSON)
	f.register(flags)
	flags.BoolVar(&f.all, "all", false, "every member, static or dynamic")
	flags.StringVar(&f.ids, "instance-ids", "", "group instance `ids`, separated by commas")
	flags.StringVar(&f.from, "instance-ids-from", "", "`file` with one group instance id a line, blank lines and # comments aside; - is standard input")
	flags.StringVar(&f.reason, "reason", "removed by millrace remove-members", "`text` that says why, for the coordinator's log; cut after 255 characters")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what would be done")
	if err := t.parse(flags, args); err != nil {
		return err
	}
	if err := f.check(t); err != nil {
		return err
	}
	ids, err := f.instanceIDs(t)
	if err != nil {
		return err
	}
	return f.withClient(ctx, func(ctx context.Context, client *kgo.Client) error { return f.remove(ctx, t, client, ids) })
}

func (f *removeFlags) check(t *terminal) error {
	named := f.ids != "" || f.from != ""
	switch {
	case f.all && named:
		return usagef("-all goes without -instance-ids and -instance-ids-from")
	case !f.all && !named:
		return usagef("-instance-ids or -instance-ids-from is missing, or -all for every member")
	}
	return f.brokerFlags.check(t)
}

// instanceIDs collects the ids without repeats.
func (f *removeFlags) instanceIDs(t *terminal) ([]string, error) {
	ids := splitIDs(f.ids)
	if f.from != "" {
		more, err := readIDs(f.from, t.in)
		if err != nil {
			return nil, fmt.Errorf("-instance-ids-from: %w", err)
		}
		ids = splitIDs(append(ids, more...)...)
	}
	if len(ids) == 0 && !f.all {
		return nil, usagef("there are no instance ids in -instance-ids %q", f.ids)
	}
	return ids, nil
}

// remove does it and reports; a member that failed makes the command fail.
func (f *removeFlags) remove(ctx context.Context, t *terminal, client *kgo.Client, ids []string) error {
	group, err := describeGroup(ctx, client, f.group)
	if err != nil {
		return err
	}
	members := named(ids)
	if f.all {
		members = everyone(group)
	}
	present := hosts(group)
	report := removalReport{Group: f.group, DryRun: f.dryRun}
	if f.dryRun {
		report.plan(members, present)
	} else {
		removals, err := metadata.RemoveMembers(ctx, client, f.group, f.reason, members)
		if err != nil {
			return err
		}
		report.tell(removals, present)
	}
	if err := report.print(t); err != nil {
		return err
	}
	report.warn(t, group)
	if slices.ContainsFunc(report.Results, func(r removal) bool { return r.Result == resultFailed }) {
		return errTold
	}
	return nil
}

func named(ids []string) []metadata.MemberName {
	var members []metadata.MemberName
	for _, id := range ids {
		members = append(members, metadata.MemberName{InstanceID: id})
	}
	return members
}

// everyone names the members of a group.
func everyone(group kadm.DescribedGroup) []metadata.MemberName {
	var members []metadata.MemberName
	for _, m := range group.Members {
		members = append(members, nameOf(m))
	}
	return members
}

func nameOf(m kadm.DescribedGroupMember) metadata.MemberName {
	if m.InstanceID != nil {
		return metadata.MemberName{InstanceID: *m.InstanceID}
	}
	return metadata.MemberName{MemberID: m.MemberID}
}

// hosts maps the members of a group to the hosts of their clients.
func hosts(group kadm.DescribedGroup) map[metadata.MemberName]string {
	present := map[metadata.MemberName]string{}
	for _, m := range group.Members {
		present[nameOf(m)] = cmp.Or(m.ClientHost, "unknown")
	}
	return present
}

// add appends an outcome.
func (r *removalReport) add(m metadata.MemberName, host, result string, err error) {
	each := removal{InstanceID: m.InstanceID, MemberID: m.MemberID, Kind: "static", ClientHost: host, Result: result}
	if m.InstanceID == "" {
		each.Kind = "dynamic"
	}
	if err != nil {
		each.Error = err.Error()
	}
	r.Results = append(r.Results, each)
}

// plan says what a removal would do.
func (r *removalReport) plan(members []metadata.MemberName, present map[metadata.MemberName]string) {
	for _, m := range members {
		host, ok := present[m]
		if ok {
			r.add(m, host, resultWouldRemove, nil)
		} else {
			r.add(m, "", resultGone, nil)
		}
	}
}

// tell says what a removal has done.
func (r *removalReport) tell(removals []metadata.Removal, present map[metadata.MemberName]string) {
	for _, each := range removals {
		switch {
		case each.Err != nil:
			r.add(each.MemberName, present[each.MemberName], resultFailed, each.Err)
		case each.Gone:
			r.add(each.MemberName, "", resultGone, nil)
		default:
			r.add(each.MemberName, present[each.MemberName], resultRemoved, nil)
		}
	}
}

func (r *removalReport) print(t *terminal) error {
	if t.form == formJSON {
		r.Results = append([]removal{}, r.Results...) // [] and not null
		return t.json(r)
	}
	for _, each := range r.Results {
		line := each.InstanceID
		if each.Kind == "dynamic" {
			line = each.MemberID + " (dynamic)"
		}
		line += ": " + each.Result
		if each.Error != "" {
			line += ": " + each.Error
		}
		if _, err := fmt.Fprintln(t.out, line); err != nil {
			return err
		}
	}
	return nil
}

// warn names the members that were still in the group: the coordinator cannot tell whether a process behind an unexpired
// session still runs, and removing it then has no lasting effect.
func (r *removalReport) warn(t *terminal, group kadm.DescribedGroup) {
	if len(group.Members) == 0 {
		t.note("group %s has no members", r.Group)
	}
	var live []string
	for _, each := range r.Results {
		if each.Result == resultRemoved || each.Result == resultWouldRemove {
			live = append(live, fmt.Sprintf("%s (client host %s)", cmp.Or(each.InstanceID, each.MemberID), each.ClientHost))
		}
	}
	if len(live) > 0 {
		t.note("the coordinator cannot tell whether these still run, as their sessions had not ended: %s; a process that still runs joins again as a new member: stop it first",
			strings.Join(live, ", "))
	}
	for _, m := range group.Members {
		if slices.ContainsFunc(r.Results, func(each removal) bool { return each.Result == resultGone && each.InstanceID == m.MemberID }) {
			t.note("%s is the member id of a member that is there, and no instance id: -instance-ids takes instance ids, -all removes dynamic members too", m.MemberID)
		}
	}
	if r.DryRun && len(live) > 0 && len(group.AuthorizedOperations) > 0 && !slices.Contains(group.AuthorizedOperations, kmsg.ACLOperationRead) {
		t.note("you lack the operation READ on group %s: the removal would be refused", r.Group)
	}
}
