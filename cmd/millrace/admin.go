package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace-io/millrace/streams"
)

// brokerFlags are the flags of verbs that ask a group's coordinator. What they leave out comes from the environment variables
// that the application itself reads (streams.Config.FromEnv), TLS and SASL from there alone: passwords do not belong on a
// command line.
type brokerFlags struct {
	brokers string
	group   string
	timeout time.Duration
	env     streams.Config
}

func (f *brokerFlags) register(flags *flag.FlagSet) {
	flags.StringVar(&f.brokers, "brokers", "", "addresses `host:port` of brokers, separated by commas (default: MILLRACE_BROKERS;\n"+
		"MILLRACE_TLS, MILLRACE_SASL_MECHANISM, _USER and _PASSWORD as for the application)")
	flags.StringVar(&f.group, "group", "", "the application's `group`: its AppID (default: MILLRACE_APP_ID)")
	flags.DurationVar(&f.timeout, "timeout", 15*time.Second, "how long the whole command may take")
}

// check completes the flags from the environment and names what is missing.
func (f *brokerFlags) check() error {
	var err error
	if f.env, err = f.env.FromEnv(); err != nil {
		return usagef("%v", err)
	}
	f.brokers = cmp.Or(f.brokers, strings.Join(f.env.Brokers, ","))
	f.group = cmp.Or(f.group, f.env.AppID)
	switch {
	case f.brokers == "":
		return usagef("-brokers is missing")
	case f.group == "":
		return usagef("-group is missing")
	case f.timeout <= 0:
		return usagef("-timeout is %v: want more than 0", f.timeout)
	}
	return nil
}

// with runs fn with an admin client within the time limit. Errors name the brokers that were asked.
func (f *brokerFlags) with(ctx context.Context, fn func(ctx context.Context, adm *kadm.Client) error) error {
	return f.withClient(ctx, func(ctx context.Context, client *kgo.Client) error { return fn(ctx, kadm.NewClient(client)) })
}

// withClient is with for requests that the admin client does not have.
func (f *brokerFlags) withClient(ctx context.Context, fn func(ctx context.Context, client *kgo.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	opts := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(f.brokers, ",")...),
		kgo.ClientID("millrace-cli"),
		kgo.RetryTimeout(f.timeout),
		kgo.RequestRetries(3), // a wrong address is told after a second or two, not after the time limit
		kgo.MinVersions(staticMembership()),
	}
	if f.env.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(f.env.TLS))
	}
	if f.env.SASL != nil {
		opts = append(opts, kgo.SASL(f.env.SASL))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return fmt.Errorf("brokers %s: %w", f.brokers, err)
	}
	defer client.Close()
	if err := fn(ctx, client); err != nil {
		return fmt.Errorf("brokers %s: %w", f.brokers, err)
	}
	return nil
}

// staticMembership are the lowest request versions that know instance ids: without the bound an old broker would be sent a
// request that silently leaves them out.
func staticMembership() *kversion.Versions {
	v := new(kversion.Versions)
	v.SetMaxKeyVersion(kmsg.DescribeGroups.Int16(), 4)
	v.SetMaxKeyVersion(kmsg.LeaveGroup.Int16(), 3)
	return v
}
