package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/millrace-io/millrace/membership/coordinator"
)

// devFlags are the flags of "dev".
type devFlags struct {
	listen     string
	advertise  string
	dataDir    string
	profile    string
	partitions int
	delay      time.Duration
	verbose    bool
	admin      string
	topics     topicFlags
}

// topicFlags collects repeated -topic name:partitions.
type topicFlags []devTopic

type devTopic struct {
	name       string
	partitions int32
}

// String is for the flag package.
func (t *topicFlags) String() string { return fmt.Sprint(*t) }

// Set reads name:partitions.
func (t *topicFlags) Set(s string) error {
	name, count, ok := strings.Cut(s, ":")
	if !ok || name == "" {
		return fmt.Errorf("want name:partitions")
	}
	n, err := strconv.ParseInt(count, 10, 32)
	if err != nil || n < 1 {
		return fmt.Errorf("want a number of partitions from 1 behind the colon")
	}
	*t = append(*t, devTopic{name, int32(n)})
	return nil
}

// runDev serves the embedded cluster until ctx ends.
func runDev(ctx context.Context, t *terminal, args []string) error {
	var f devFlags
	flags := t.flags("[-listen host:port] [-data-dir dir] [flags]",
		"Serves an embedded Kafka cluster of one node to any Kafka client, for development and tests.\nEverything acknowledged survives a kill of the process when -data-dir is given. There is no authentication.")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:9092", "`host:port` to listen on; port 0 picks a free one")
	flags.StringVar(&f.advertise, "advertise", "", "`host:port` to tell clients, if they cannot reach the one listened on")
	flags.StringVar(&f.dataDir, "data-dir", "", "`directory` that keeps topics, records, groups and offsets; without it they end with the process")
	flags.StringVar(&f.profile, "profile", coordinator.Kafka.String(), "group coordinator `rules`: kafka, or kip345 to keep what static membership promises where Kafka breaks it")
	flags.IntVar(&f.partitions, "partitions", 1, "`number` of partitions of a topic that is created without one")
	flags.DurationVar(&f.delay, "initial-rebalance-delay", 0, "how long the first rebalance of an empty group waits for more members (Kafka's default is 3s)")
	flags.StringVar(&f.admin, "admin", "", "`host:port` for the HTTP admin side (/admin/v1); without it there is none")
	flags.BoolVar(&f.verbose, "v", false, "log what the cluster does")
	flags.Var(&f.topics, "topic", "`name:partitions` of a topic to create if it is missing; may be repeated")
	if err := t.parse(flags, args); err != nil {
		return err
	}
	opts, err := f.options(t.err)
	if err != nil {
		return err
	}
	c, err := cluster.Start(opts...)
	if err != nil {
		return err
	}
	side, err := serveAdmin(c, f.admin)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	f.announce(t.stdio, c, side)
	select {
	case <-ctx.Done():
	case err = <-side.failed:
	}
	fmt.Fprintln(t.err, "stopping")
	return errors.Join(err, side.close(), c.Close())
}

func (f *devFlags) options(log io.Writer) ([]cluster.Option, error) {
	profile, err := coordinator.ParseProfile(f.profile)
	if err != nil {
		return nil, usagef("-profile: %v", err)
	}
	level := slog.LevelWarn
	if f.verbose {
		level = slog.LevelDebug
	}
	opts := []cluster.Option{
		cluster.Listen(f.listen),
		cluster.Advertise(f.advertise),
		cluster.DataDir(f.dataDir),
		cluster.Profile(profile),
		cluster.DefaultPartitions(int32(f.partitions)),
		cluster.InitialRebalanceDelay(f.delay),
		cluster.Logger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))),
	}
	for _, t := range f.topics {
		opts = append(opts, cluster.Topic(t.name, t.partitions))
	}
	return opts, nil
}

// announce prints the address on standard output, for scripts, and what it is on standard error, for people.
func (f *devFlags) announce(s stdio, c *cluster.Cluster, side *adminSide) {
	fmt.Fprintln(s.out, c.Brokers()[0])
	fmt.Fprintf(s.err, "embedded Kafka cluster for development: bootstrap.servers=%s\n", c.Brokers()[0])
	if f.dataDir == "" {
		fmt.Fprintln(s.err, "data: temporary, removed at the end (keep it with -data-dir)")
	} else {
		fmt.Fprintf(s.err, "data: %s\n", f.dataDir)
	}
	if side.url != "" {
		fmt.Fprintf(s.err, "admin: %s/admin/v1/groups\n", side.url)
	}
	if f.admin != "" && !loopback(f.admin) { // the cluster says so of its own address
		fmt.Fprintf(s.err, "WARNING: %s is reachable from other machines, and there is no authentication\n", f.admin)
	}
	tellRecovery(s.err, c.Recovery())
}

// tellRecovery says what the start had to mend after a crash.
func tellRecovery(w io.Writer, r cluster.Recovery) {
	if !r.Existing || r.Clean {
		return
	}
	if r.TornBytes == 0 && len(r.Transactions) == 0 && len(r.Damaged) == 0 {
		fmt.Fprintln(w, "the last stop was not orderly; there was nothing to recover")
		return
	}
	fmt.Fprintln(w, "the last stop was not orderly; recovered:")
	fmt.Fprintf(w, "  %d bytes of unfinished records cut (never acknowledged)\n", r.TornBytes)
	fmt.Fprintf(w, "  %d parts of open transactions ended, and their producers fenced\n", len(r.Transactions))
	for _, t := range r.Transactions {
		how := "aborted"
		if t.Committed {
			how = "committed, as its producer had asked"
		}
		fmt.Fprintf(w, "    producer %d epoch %d in %s-%d: %s\n", t.ProducerID, t.ProducerEpoch, t.Topic, t.Partition, how)
	}
	for _, d := range r.Damaged {
		fmt.Fprintf(w, "  DAMAGED: %s-%d lost %d bytes of records from offset %d on\n", d.Topic, d.Partition, d.Bytes, d.Offset)
	}
}

// loopback reports whether a listen address is reachable from this machine only.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
