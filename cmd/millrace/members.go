package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/integration/cluster/admin"
	"github.com/millrace-io/millrace/membership/codec"
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
	return f.withClient(ctx, func(ctx context.Context, client *kgo.Client) error {
		group, err := describeGroup(ctx, client, f.group)
		if err != nil {
			return err
		}
		list := membersOf(group)
		if t.form == formJSON {
			return t.json(list)
		}
		return list.print(t.out)
	})
}

// memberList is a group as brokers tell it.
type memberList struct {
	Group      string         `json:"group"`
	GroupState string         `json:"group_state"`
	Protocol   string         `json:"protocol"`
	Members    []listedMember `json:"members"`
}

type listedMember struct {
	MemberID   string  `json:"member_id"`
	InstanceID *string `json:"instance_id"` // null: a dynamic member
	ClientID   string  `json:"client_id"`
	ClientHost string  `json:"client_host"`
	Assigned   string  `json:"assigned"` // tasks of a Millrace application, partitions of a consumer
}

func membersOf(group kadm.DescribedGroup) memberList {
	list := memberList{group.Group, group.State, group.Protocol, []listedMember{}}
	for _, m := range group.Members {
		var assignment []byte
		if a, ok := m.Assigned.AsConsumer(); ok && group.State == "Stable" { // in other states brokers tell none
			assignment = a.AppendTo(nil)
		}
		list.Members = append(list.Members, listedMember{m.MemberID, m.InstanceID, m.ClientID, m.ClientHost, assigned(group.Protocol, assignment)})
	}
	return list
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
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", m.MemberID, orDynamic(m.InstanceID), m.Host, m.State, assigned(g.Protocol, m.Assignment))
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

func (l memberList) print(w io.Writer) error {
	fmt.Fprintf(w, "group %s: %s, %d members\n", l.Group, l.GroupState, len(l.Members))
	if len(l.Members) == 0 {
		return nil
	}
	table := memberTable(w)
	for _, m := range l.Members {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", m.MemberID, orDynamic(m.InstanceID), m.ClientHost, l.GroupState, m.Assigned)
	}
	return table.Flush()
}

func orDynamic(instance *string) string {
	if instance == nil {
		return "(dynamic)"
	}
	return *instance
}

// assigned says in short what a member was assigned: tasks of a Millrace application, partitions of a consumer.
func assigned(protocol string, assignment []byte) string {
	if protocol == codec.ProtocolName && len(assignment) > 0 {
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
	if len(assignment) == 0 {
		return "-"
	}
	var a kmsg.ConsumerMemberAssignment
	if a.ReadFrom(assignment) != nil {
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
