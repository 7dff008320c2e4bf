package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/integration/cluster/admin"
	"github.com/millrace-io/millrace/membership/codec"
	"github.com/millrace-io/millrace/metadata/rest"
)

// runMembers lists the members of any group, as its coordinator sees them.
func runMembers(ctx context.Context, t *terminal, args []string) error {
	var f operateFlags
	flags := t.flags(operateSynopsis,
		"Lists the members of a group: member id, instance id, host, state and what is assigned to each.\n"+
			"With -admin the embedded cluster also tells which members are offline or spare, and who waits to join.",
		formText, formJSON)
	f.register(flags)
	if err := t.parse(flags, args); err != nil {
		return err
	}
	if err := f.check(t); err != nil {
		return err
	}
	if f.admin != "" {
		return f.withAdmin(ctx, func(ctx context.Context, c *admin.Client) error {
			g, err := c.Group(ctx, f.group)
			if err != nil {
				return err
			}
			if t.form == formJSON {
				return t.json(g)
			}
			return printGroup(t.out, g)
		})
	}
	list, err := f.list(ctx)
	if err != nil {
		return err
	}
	if t.form == formJSON {
		return t.json(list)
	}
	return printMembers(t.out, list)
}

// memberTable has the columns of both ways.
func memberTable(w io.Writer) *tabwriter.Writer {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEMBER ID\tINSTANCE ID\tHOST\tSTATE\tASSIGNED")
	return table
}

func printGroup(w io.Writer, g admin.Group) error {
	fmt.Fprintf(w, "group %s: %s, generation %d, %d members\n", g.Group, g.State, g.Generation, len(g.Members))
	if len(g.Members) > 0 {
		table := memberTable(w)
		for _, m := range g.Members {
			instance := "(dynamic)"
			if m.InstanceID != nil {
				instance = *m.InstanceID
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", m.MemberID, instance, m.Host, m.State, assigned(g.Protocol, m.Assignment))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if len(g.Newcomers) > 0 {
		fmt.Fprintf(w, "waiting to join: %s\n", strings.Join(g.Newcomers, ", "))
	}
	return nil
}

func printMembers(w io.Writer, list rest.InstancesResponse) error {
	fmt.Fprintf(w, "group %s: %s, %d members\n", list.Group, list.GroupState, len(list.Instances))
	if len(list.Instances) == 0 {
		return nil
	}
	table := memberTable(w)
	for _, in := range list.Instances {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", in.MemberID, cmp.Or(in.InstanceID, "(dynamic)"), cmp.Or(in.ClientHost, in.Host),
			cmp.Or(in.State, list.GroupState), shortTasks(in.ActiveTasks))
	}
	return table.Flush()
}

// assigned says in short what a member was assigned: tasks of a Millrace application, partitions of a consumer.
func assigned(protocol string, assignment []byte) string {
	if protocol == codec.ProtocolName {
		_, grant, err := codec.DecodeGrant(assignment)
		if err != nil {
			return err.Error()
		}
		var names []string
		for _, id := range grant.Active {
			names = append(names, id.String())
		}
		return shortTasks(names)
	}
	var a kmsg.ConsumerMemberAssignment
	if len(assignment) == 0 || a.ReadFrom(assignment) != nil {
		return fmt.Sprintf("%d bytes", len(assignment))
	}
	var parts []string
	for _, t := range a.Topics {
		for _, p := range t.Partitions {
			parts = append(parts, fmt.Sprintf("%s-%d", t.Topic, p))
		}
	}
	return cmp.Or(strings.Join(parts, " "), "-")
}
