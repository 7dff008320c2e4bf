package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/cluster/admin"
	"github.com/millrace-io/millrace/metadata"
)

// operateFlags are the flags of verbs that ask the admin side of an embedded cluster, or do what they can with the
// requests that every broker has.
type operateFlags struct {
	brokerFlags
	admin string
}

func (f *operateFlags) register(flags *flag.FlagSet) {
	f.brokerFlags.register(flags)
	flags.StringVar(&f.admin, "admin", "", "the admin side of an embedded cluster, `http://host:port` (millrace dev -admin), to be asked instead of brokers")
}

// synopsis is how both ways are called.
const operateSynopsis = "(-admin http://host:port | -brokers host:port,…) -group g"

func (f *operateFlags) check(t *terminal) error {
	switch {
	case f.admin == "":
		return f.brokerFlags.check(t)
	case f.brokers != "" || f.security.given():
		return usagef("-admin goes without -brokers and what belongs to it: the cluster is asked directly")
	case f.group == "":
		return usagef("-group is missing")
	case f.timeout < 0:
		return usagef("-timeout is %v: want more than 0", f.timeout)
	}
	f.timeout = cmp.Or(f.timeout, defaultTimeout)
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

// describeGroup asks for one group. One that does not exist is an error: its name may be mistyped.
func describeGroup(ctx context.Context, client *kgo.Client, group string) (kadm.DescribedGroup, error) {
	d, err := metadata.DescribeGroup(ctx, kadm.NewClient(client), group)
	if err == nil && d.State == "Dead" {
		err = noGroup(group, d.ErrMessage)
	}
	return d, err
}

// noGroup says that a group does not exist, or that it has another protocol.
func noGroup(group, said string) error {
	if err := otherProtocol(group, said); err != nil {
		return err
	}
	return hinted{fmt.Errorf("there is no group %q", group), "check -group (an application's group is its AppID) and -brokers (is it the right cluster?)"}
}

// otherProtocol says that a group has another protocol than classic, which coordinators tell in words only; nil if it has not.
func otherProtocol(group, said string) error {
	if !strings.Contains(said, "not a classic group") {
		return nil
	}
	return fmt.Errorf("group %q has another group protocol than classic: %s", group, said)
}
