package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace-io/millrace/cmd/millrace/clientconfig"
	"github.com/millrace-io/millrace/streams"
)

// defaultTimeout is how long a command may take.
const defaultTimeout = 15 * time.Second

// brokerFlags are the flags of verbs that ask a group's coordinator. What they leave out comes from the file of
// -command-config, and then from the environment variables that the application itself reads (streams.Config.FromEnv).
type brokerFlags struct {
	brokers  string
	group    string
	timeout  time.Duration
	security securityFlags

	connection clientconfig.Connection // once checked
}

func (f *brokerFlags) register(flags *flag.FlagSet) {
	flags.StringVar(&f.brokers, "brokers", "", "addresses `host:port` of brokers, separated by commas (default: MILLRACE_BROKERS)")
	flags.StringVar(&f.group, "group", "", "the application's `group`: its AppID (default: MILLRACE_APP_ID)")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long the whole command may take (default: default.api.timeout.ms of -command-config, or 15s)")
	f.security.register(flags)
}

// check completes the flags and names what is missing.
func (f *brokerFlags) check(t *terminal) error {
	env, err := streams.Config{}.FromEnv()
	if err != nil {
		return usagef("%v", err)
	}
	f.brokers = cmp.Or(f.brokers, strings.Join(env.Brokers, ","))
	f.group = cmp.Or(f.group, env.AppID)
	switch {
	case f.brokers == "":
		return usagef("-brokers is missing")
	case f.group == "":
		return usagef("-group is missing")
	case f.timeout < 0:
		return usagef("-timeout is %v: want more than 0", f.timeout)
	}
	if f.connection, err = f.security.connection(env); err != nil {
		return err
	}
	for _, note := range f.connection.Notes {
		t.note("%s: %s", cmp.Or(f.security.file, "flags"), note)
	}
	f.timeout = cmp.Or(f.timeout, f.connection.Timeout, defaultTimeout)
	return nil
}

// withClient runs fn with a client within the time limit. Errors name the brokers that were asked.
func (f *brokerFlags) withClient(ctx context.Context, fn func(ctx context.Context, client *kgo.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(strings.Split(f.brokers, ",")...),
		kgo.ClientID("millrace-cli"),
		kgo.RetryTimeout(f.timeout),
		kgo.RequestRetries(3), // a wrong address is told after a second or two, not after the time limit
		kgo.MinVersions(staticMembership()),
	}, f.connection.Options()...)...)
	if err != nil {
		return fmt.Errorf("brokers %s: %w", f.brokers, err)
	}
	defer client.Close()
	if err := patiently(ctx, func() error { return fn(ctx, client) }); err != nil {
		return fmt.Errorf("brokers %s: %w", f.brokers, f.explain(err))
	}
	return nil
}

// patiently repeats fn while the group's coordinator is on its way, after a failover or as the first group of a cluster.
// Nothing has been done then.
func patiently(ctx context.Context, fn func() error) error {
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	for {
		err := fn()
		if !errors.Is(err, kerr.CoordinatorNotAvailable) && !errors.Is(err, kerr.CoordinatorLoadInProgress) && !errors.Is(err, kerr.NotCoordinator) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

// staticMembership are the lowest request versions that know instance ids: without the bound an old broker would be sent a
// request that silently leaves them out.
func staticMembership() *kversion.Versions {
	v := new(kversion.Versions)
	v.SetMaxKeyVersion(kmsg.DescribeGroups.Int16(), 4)
	v.SetMaxKeyVersion(kmsg.LeaveGroup.Int16(), 3)
	return v
}
