package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/cluster/admin"
)

// operateFlags are the flags of verbs that ask the admin side of an embedded cluster, or do what they can with the
// requests that every broker has.
type operateFlags struct {
	brokerFlags
	admin string
	form  string
}

func (f *operateFlags) register(flags *flag.FlagSet) {
	f.brokerFlags.register(flags)
	flags.StringVar(&f.admin, "admin", "", "the admin side of an embedded cluster, `http://host:port` (millrace dev -admin), to be asked instead of brokers")
	flags.StringVar(&f.form, "o", formText, "output `form`: text or json")
}

// synopsis is how both ways are called.
const operateSynopsis = "(-admin http://host:port | -brokers host:port,…) -group g"

func (f *operateFlags) check() error {
	switch {
	case f.form != formText && f.form != formJSON:
		return usagef("-o is %q: want text or json", f.form)
	case f.admin == "":
		return f.brokerFlags.check()
	case f.brokers != "":
		return usagef("-admin goes without -brokers: the cluster is asked directly")
	case f.group == "":
		return usagef("-group is missing")
	case f.timeout <= 0:
		return usagef("-timeout is %v: want more than 0", f.timeout)
	}
	return nil
}

// withAdmin runs fn with a client of the admin side within the time limit.
func (f *operateFlags) withAdmin(ctx context.Context, fn func(ctx context.Context, c *admin.Client) error) error {
	client, err := admin.NewClient(f.admin)
	if err != nil {
		return usagef("-admin: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	if err := fn(ctx, client); err != nil {
		return fmt.Errorf("admin side %s: %w", f.admin, err)
	}
	return nil
}

// describeGroup asks for one group.
func describeGroup(ctx context.Context, client *kgo.Client, group string) (kadm.DescribedGroup, error) {
	described, err := kadm.NewClient(client).DescribeGroups(ctx, group)
	if err != nil {
		return kadm.DescribedGroup{}, fmt.Errorf("describe group %q: %w", group, err)
	}
	d := described[group]
	if d.Err != nil {
		return d, fmt.Errorf("describe group %q: %w", group, d.Err)
	}
	return d, nil
}

// splitIDs reads lists of ids that are separated by commas, without repeats.
func splitIDs(lists ...string) []string {
	var ids []string
	for _, list := range lists {
		for _, id := range strings.Split(list, ",") {
			if id = strings.TrimSpace(id); id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// orDash shows an empty list.
func orDash(ids []string) string {
	if len(ids) == 0 {
		return "-"
	}
	return strings.Join(ids, ", ")
}
