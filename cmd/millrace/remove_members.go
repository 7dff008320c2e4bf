package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/millrace-io/millrace/metadata"
)

// What became of an instance id.
const (
	resultRemoved     = "removed"
	resultWouldRemove = "would remove"
	resultGone        = "already gone" // not in the group, for example because its session ended: what was asked for is so
	resultFailed      = "failed"
)

// removal is the outcome for one instance id.
type removal struct {
	InstanceID string `json:"instance_id"`
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
	ids    string
	from   string
	reason string
	dryRun bool
	form   string
}

// runRemoveMembers removes static members in one batch, so that the group rebalances once.
func runRemoveMembers(ctx context.Context, s stdio, args []string) error {
	var f removeFlags
	flags := newFlags(s, "remove-members", "-brokers host:port,… -group g (-instance-ids a,b | -instance-ids-from file|-) [-reason text] [-dry-run] [-o text|json]",
		"Removes static members that will not come back, so that their tasks move at once instead of at the end of their session.\n"+
			"Stop the processes first: a member whose process still runs joins again as a new one.")
	f.register(flags)
	flags.StringVar(&f.ids, "instance-ids", "", "group instance `ids`, separated by commas")
	flags.StringVar(&f.from, "instance-ids-from", "", "`file` with one group instance id a line; - is standard input")
	flags.StringVar(&f.reason, "reason", "removed by millrace remove-members", "why, for the coordinator's log; cut after 255 characters")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what would be done")
	flags.StringVar(&f.form, "o", formText, "output `form`: text or json")
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	ids, err := f.instanceIDs(s.in)
	if err != nil {
		return err
	}
	return f.with(ctx, func(ctx context.Context, adm *kadm.Client) error { return f.remove(ctx, s, adm, ids) })
}

func (f *removeFlags) check() error {
	switch {
	case f.form != formText && f.form != formJSON:
		return usagef("-o is %q: want text or json", f.form)
	case f.ids == "" && f.from == "":
		return usagef("-instance-ids or -instance-ids-from is missing")
	}
	return f.brokerFlags.check()
}

// instanceIDs collects the ids without repeats. None at all is an error: a broken pipe must not look like success.
func (f *removeFlags) instanceIDs(stdin io.Reader) ([]string, error) {
	ids := strings.Split(f.ids, ",")
	if f.from != "" {
		text, err := readAll(f.from, stdin)
		if err != nil {
			return nil, fmt.Errorf("-instance-ids-from: %w", err)
		}
		ids = append(ids, strings.Split(text, "\n")...)
	}
	var unique []string
	for _, id := range ids {
		if id = strings.TrimSpace(id); id != "" && !slices.Contains(unique, id) {
			unique = append(unique, id)
		}
	}
	if len(unique) == 0 {
		return nil, fmt.Errorf("there are no instance ids in the input")
	}
	return unique, nil
}

func readAll(name string, stdin io.Reader) (string, error) {
	if name == "-" {
		text, err := io.ReadAll(stdin)
		return string(text), err
	}
	text, err := os.ReadFile(name)
	return string(text), err
}

// remove does it and reports; an id that failed makes the command fail.
func (f *removeFlags) remove(ctx context.Context, s stdio, adm *kadm.Client, ids []string) error {
	hosts, err := metadata.StaticInstances(ctx, adm, f.group)
	if err != nil {
		return err
	}
	report := removalReport{Group: f.group, DryRun: f.dryRun}
	if f.dryRun {
		report.Results = planRemoval(hosts, ids)
	} else {
		removals, err := metadata.RemoveInstances(ctx, adm, f.group, f.reason, ids)
		if err != nil {
			return err
		}
		report.Results = results(removals)
	}
	if err := report.print(s.out, f.form); err != nil {
		return err
	}
	report.warn(s.err, hosts)
	if slices.ContainsFunc(report.Results, func(r removal) bool { return r.Result == resultFailed }) {
		return errTold
	}
	return nil
}

func planRemoval(hosts map[string]string, ids []string) []removal {
	var results []removal
	for _, id := range ids {
		result := resultGone
		if _, ok := hosts[id]; ok {
			result = resultWouldRemove
		}
		results = append(results, removal{InstanceID: id, Result: result})
	}
	return results
}

// results puts what became of each id into the report's words.
func results(removals []metadata.Removal) []removal {
	var list []removal
	for _, r := range removals {
		each := removal{InstanceID: r.InstanceID, Result: resultRemoved}
		switch {
		case r.Err != nil:
			each.Result, each.Error = resultFailed, r.Err.Error()
		case r.Gone:
			each.Result = resultGone
		}
		list = append(list, each)
	}
	return list
}

func (r removalReport) print(w io.Writer, form string) error {
	if form == formJSON {
		return printJSON(w, r)
	}
	for _, each := range r.Results {
		line := each.InstanceID + ": " + each.Result
		if each.Error != "" {
			line += ": " + each.Error
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// warn names the members that were still in the group: the coordinator cannot tell whether a process behind an unexpired
// session still runs, and removing it then has no lasting effect.
//
// A group without static members is worth a word too: it may be a typing mistake in its name.
func (r removalReport) warn(w io.Writer, hosts map[string]string) {
	if len(hosts) == 0 {
		fmt.Fprintf(w, "note: group %s has no static members, or does not exist: is the name right?\n", r.Group)
	}
	for _, each := range r.Results {
		host, ok := hosts[each.InstanceID]
		if ok && (each.Result == resultRemoved || each.Result == resultWouldRemove) {
			fmt.Fprintf(w, "note: the session of %s (client host %s) had not ended: if its process still runs, it joins again as a new member; stop it first\n",
				each.InstanceID, cmp.Or(host, "unknown"))
		}
	}
}
