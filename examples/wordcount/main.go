// Command wordcount counts the words of text files on Millrace. Alone, it brings its own Kafka: an embedded
// cluster in the same process.
//
//	go run ./examples/wordcount [flag ...] [file ...]
//
// Without files it counts this project's own *.md and *.go. It shows progress while it works, prints the most
// frequent words with their counts when the input is counted, and the addresses of its REST side; then it goes
// on, ready for more lines, until Ctrl-C. With -once it ends there.
//
// A word is a run of letters and digits, in lower case. A file that is missing, a directory or binary is
// named and left out; bytes that are no UTF-8 are skipped and reported with their offset; a line above 64 KiB
// is cut between words. With -once the exit status is 1 if a named file could not be read.
//
// With -brokers it runs on a Kafka cluster of yours, as one of any number of processes of the application:
// give each a -client-id of its own, and it is a static member that finds its tasks and its state again when
// it is restarted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/millrace-io/millrace/streams"
)

type options struct {
	brokers    string
	appID      string
	clientID   string
	dir        string
	rest       string
	restSet    bool
	session    time.Duration
	flush      time.Duration
	threads    int
	partitions int
	top        int
	once       bool
	noInput    bool
	eos        bool
	verbose    bool
	files      []string
}

var errUsage = errors.New("usage: wordcount [flag ...] [file ...]; -help lists the flags")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "wordcount:", err)
		os.Exit(1)
	}
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("wordcount", flag.ContinueOnError)
	f.SetOutput(usage)
	f.StringVar(&o.brokers, "brokers", "", "Kafka brokers, host:port separated by commas; empty: an embedded cluster in this process")
	f.StringVar(&o.appID, "app-id", "wordcount", "application id: the consumer group, and prefix of internal topics")
	f.StringVar(&o.clientID, "client-id", "wc-0", "name of this process within the application; makes it a static member")
	f.StringVar(&o.dir, "dir", "", "directory of local state, and of the embedded cluster's data; empty: a temporary one, removed at the end")
	f.StringVar(&o.rest, "rest", "127.0.0.1:8080", "address of the REST side; another free port is taken if it is busy, unless it was asked for")
	f.DurationVar(&o.session, "session", 0, "session timeout: how long a killed process may take to come back before its tasks move; 0: the default")
	f.DurationVar(&o.flush, "flush", 0, "how often local state is written to disk, so that a kill takes back less; 0: the default")
	f.IntVar(&o.threads, "threads", 2, "stream threads")
	f.IntVar(&o.partitions, "partitions", 4, "partitions of the topics lines and counts, if they do not exist")
	f.IntVar(&o.top, "top", 20, "how many words to print")
	f.BoolVar(&o.once, "once", false, "end when the input is counted")
	f.BoolVar(&o.noInput, "no-input", false, "read no files: only count what others write to the topic lines")
	f.BoolVar(&o.eos, "eos", false, "exactly-once instead of at-least-once")
	f.BoolVar(&o.verbose, "v", false, "log what happens, not only warnings")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w (%v)", errUsage, err)
	}
	f.Visit(func(given *flag.Flag) { o.restSet = o.restSet || given.Name == "rest" })
	o.files = f.Args()
	switch {
	case o.noInput && (o.once || len(o.files) > 0):
		return o, fmt.Errorf("%w (-no-input goes with neither -once nor files)", errUsage)
	case o.partitions < 1 || o.top < 0:
		return o, fmt.Errorf("%w (-partitions must be at least 1, -top at least 0)", errUsage)
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "wordcount-"); err != nil {
			return err
		}
		defer os.RemoveAll(o.dir)
	}
	brokers := strings.Split(o.brokers, ",")
	if o.brokers == "" {
		c, err := cluster.Start(cluster.DataDir(filepath.Join(o.dir, "cluster")))
		if err != nil {
			return err
		}
		defer c.Close()
		brokers = c.Brokers()
		fmt.Fprintf(stdout, "embedded cluster at %s\n", strings.Join(brokers, ","))
	}
	job, err := newJob(ctx, o, brokers, stdout, stderr)
	if err != nil {
		return err
	}
	defer job.close()
	return job.run(ctx)
}

// config is the application's configuration.
func (o *options) config(brokers []string, logs io.Writer) streams.Config {
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelInfo
	}
	cfg := streams.Config{
		AppID:    o.appID,
		ClientID: o.clientID,
		Brokers:  brokers,
		StateDir: filepath.Join(o.dir, "state"),
		Threads:  o.threads,
		RESTAddr: o.freeRESTAddr(),

		SessionTimeout:     o.session,
		StateFlushInterval: o.flush,
		Logger:             slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level})),
	}
	if o.eos {
		cfg.Guarantee = streams.ExactlyOnce
	}
	return cfg
}

// freeRESTAddr spares a first run the trouble of a busy port. An address that was asked for is never replaced:
// it belongs to the identity of a static member, and another one costs a rebalance.
func (o *options) freeRESTAddr() string {
	if o.restSet || o.rest == "" {
		return o.rest
	}
	for _, addr := range []string{o.rest, "127.0.0.1:0"} {
		if l, err := net.Listen("tcp", addr); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	return o.rest
}
