package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/cluster/admin"
	"github.com/millrace-io/millrace/metadata"
)

// How the list of expected members is kept.
const (
	howList    = "kept by the coordinator"
	howCompare = "emulated: compared with the group, nothing is kept"
)

// expectFlags are the flags of expect.
type expectFlags struct {
	operateFlags
	refuseOthers bool
	removeNow    bool
	wait         time.Duration
	ids          []string
}

// expectReport is the output.
type expectReport struct {
	Group    string   `json:"group"`
	How      string   `json:"how"`
	Expected []string `json:"expected"`
	Waiting  []string `json:"waiting"` // their joins wait for the others
	Missing  []string `json:"missing"`
	Others   []string `json:"others"` // in the group, and not expected
	Removed  []string `json:"removed"`
}

// runExpect tells a group which instance ids it is going to have.
func runExpect(ctx context.Context, t *terminal, args []string) error {
	var f expectFlags
	flags := t.flags(operateSynopsis+" [-remove-now] [-refuse-others] [-wait d] instance-id,…",
		"Says which static members a group is going to have, so that scaling costs one rebalance: new ones wait for each other, and\n"+
			"those that are no longer expected leave together. No ids turn it off.\n\n"+
			"With -admin the coordinator keeps the list. Brokers have no such list, so with -brokers it is compared with the group:\n"+
			"-wait waits until nobody is missing, and -remove-now removes the others in one LeaveGroup. Exit status 1 while somebody is missing after -wait.",
		formText, formJSON)
	f.register(flags)
	flags.BoolVar(&f.removeNow, "remove-now", false, "remove members that are not expected at once; with -admin without it they leave when all of them are offline")
	flags.BoolVar(&f.refuseOthers, "refuse-others", false, "refuse new static members that are not on the list (-admin only)")
	flags.DurationVar(&f.wait, "wait", 0, "how long to wait for those who are missing")
	ids, err := t.parseWithArgs(flags, args)
	if err != nil {
		return err
	}
	f.ids = splitIDs(ids...)
	if err := f.check(t); err != nil {
		return err
	}
	f.timeout += f.wait
	if f.admin != "" {
		return f.withAdmin(ctx, func(ctx context.Context, c *admin.Client) error { return f.tell(ctx, t, c) })
	}
	return f.withClient(ctx, func(ctx context.Context, client *kgo.Client) error {
		return f.compare(ctx, t, client)
	})
}

func (f *expectFlags) check(t *terminal) error {
	switch {
	case f.wait < 0:
		return usagef("-wait is %v: want 0 or more", f.wait)
	case f.admin == "" && f.refuseOthers:
		return usagef("-refuse-others needs -admin: brokers let everybody in")
	case f.admin == "" && len(f.ids) == 0:
		return usagef("there are no instance ids: brokers keep no list that could be turned off")
	}
	return f.operateFlags.check(t)
}

// tell gives the coordinator the list.
func (f *expectFlags) tell(ctx context.Context, t *terminal, c *admin.Client) error {
	if _, err := c.Expect(ctx, f.group, admin.Expected{InstanceIDs: f.ids, RefuseOthers: f.refuseOthers, RemoveNow: f.removeNow}); err != nil {
		return err
	}
	report, err := f.await(ctx, func(ctx context.Context) (members, newcomers []string, err error) {
		g, err := c.Group(ctx, f.group)
		if refused, ok := err.(*admin.Error); ok && refused.Code == 0 {
			return nil, nil, nil // nobody has joined yet: there is no group
		}
		for _, m := range g.Members {
			if m.InstanceID != nil {
				members = append(members, *m.InstanceID)
			}
		}
		return members, g.Newcomers, err
	})
	if err != nil {
		return err
	}
	report.How = howList
	return f.print(t, report)
}

// compare does with a broker's requests what can be done.
func (f *expectFlags) compare(ctx context.Context, t *terminal, client *kgo.Client) error {
	look := func(ctx context.Context) (members, newcomers []string, err error) {
		group, err := metadata.DescribeGroup(ctx, kadm.NewClient(client), f.group)
		if err == nil {
			err = otherProtocol(f.group, group.ErrMessage)
		}
		for _, m := range group.Members {
			if m.InstanceID != nil {
				members = append(members, *m.InstanceID)
			}
		}
		slices.Sort(members)
		return members, nil, err
	}
	report, err := f.await(ctx, look)
	if err != nil {
		return err
	}
	report.How = howCompare
	if f.removeNow && len(report.Others) > 0 {
		removals, err := metadata.RemoveInstances(ctx, client, f.group, "not expected", report.Others)
		if err != nil {
			return err
		}
		for _, r := range removals {
			if r.Err != nil {
				return fmt.Errorf("remove %s: %w", r.InstanceID, r.Err)
			}
			report.Removed = append(report.Removed, r.InstanceID)
		}
		report.Others = []string{}
	}
	return f.print(t, report)
}

// await looks until nobody is missing or the wait is over.
func (f *expectFlags) await(ctx context.Context, look func(context.Context) (members, newcomers []string, err error)) (expectReport, error) {
	over := time.NewTimer(f.wait)
	defer over.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		members, newcomers, err := look(ctx)
		if err != nil {
			return expectReport{}, err
		}
		report := f.report(members, newcomers)
		if len(report.Missing) == 0 && len(report.Waiting) == 0 || f.wait == 0 {
			return report, nil
		}
		select {
		case <-again.C:
		case <-over.C:
			return report, nil
		case <-ctx.Done():
			return report, ctx.Err()
		}
	}
}

func (f *expectFlags) report(members, newcomers []string) expectReport {
	r := expectReport{Group: f.group, Expected: f.ids, Waiting: []string{}, Missing: []string{}, Others: []string{}, Removed: []string{}}
	for _, id := range f.ids {
		switch {
		case slices.Contains(members, id):
		case slices.Contains(newcomers, id):
			r.Waiting = append(r.Waiting, id)
		default:
			r.Missing = append(r.Missing, id)
		}
	}
	for _, id := range members {
		if len(f.ids) > 0 && !slices.Contains(f.ids, id) {
			r.Others = append(r.Others, id)
		}
	}
	return r
}

// print tells, and fails if somebody was waited for in vain.
func (f *expectFlags) print(t *terminal, r expectReport) error {
	if t.form == formJSON {
		if err := t.json(r); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(t.out, "group %s expects: %s (%s)\n", r.Group, orDash(r.Expected), r.How)
		for _, line := range []struct {
			name string
			ids  []string
		}{{"waiting for the others", r.Waiting}, {"missing", r.Missing}, {"not expected", r.Others}, {"removed", r.Removed}} {
			if len(line.ids) > 0 {
				fmt.Fprintf(t.out, "%s: %s\n", line.name, orDash(line.ids))
			}
		}
	}
	if f.wait > 0 && len(r.Missing) > 0 {
		return errTold
	}
	return nil
}
