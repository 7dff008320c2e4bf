package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"
)

// options are the flags, named as the peer's.
type options struct {
	workload string

	bootstrap, appID, in, out string
	partitions                int
	stateDir                  string

	guarantee string
	commit    time.Duration
	threads   int
	instance  string
	session   time.Duration

	linger              time.Duration
	batchBytes          int
	compression         string
	pollRecords         int
	fetchMaxBytes       int
	partitionFetchBytes int
	cacheMB, memtableMB int64

	window, grace time.Duration

	expect, expectOut int64
	timeout           time.Duration
	report            time.Duration
	warm              float64

	seed     uint64
	records  uint64
	keys     uint64
	zipf     bool
	size     int
	words    int
	dtMicros int64
	t0       int64
	kind     string

	of string

	gogc        int
	memoryLimit int64
	cpuProfile  string
	memProfile  string
}

var errUsage = errors.New("usage: bench <load|raw|rawcount|pass|count|windowed|wordcount|verify> [--flag value ...]")

// parse reads the command line. Durations are whole milliseconds, as the peer has them.
func parse(args []string, usage io.Writer) (options, error) {
	var o options
	if len(args) == 0 {
		return o, errUsage
	}
	o.workload = args[0]
	f := flag.NewFlagSet("bench "+o.workload, flag.ContinueOnError)
	f.SetOutput(usage)
	millis := func(p *time.Duration, name string, def int64, help string) {
		*p = time.Duration(def) * time.Millisecond
		f.Func(name, fmt.Sprintf("%s (milliseconds, default %d)", help, def), func(s string) error {
			d, err := time.ParseDuration(s + "ms")
			*p = d
			return err
		})
	}
	f.StringVar(&o.bootstrap, "bootstrap", "127.0.0.1:9092", "broker")
	f.StringVar(&o.appID, "app-id", "bench", "application id: consumer group and prefix of internal topics")
	f.StringVar(&o.in, "in", "bench-in", "input topic")
	f.StringVar(&o.out, "out", "bench-out", "sink topic")
	f.IntVar(&o.partitions, "partitions", 4, "partitions of topics that are created")
	f.StringVar(&o.stateDir, "state-dir", "bench-state", "directory of local state")

	f.StringVar(&o.guarantee, "guarantee", "at_least_once", "at_least_once or exactly_once_v2")
	millis(&o.commit, "commit-ms", 1000, "commit interval")
	f.IntVar(&o.threads, "threads", 1, "stream threads")
	f.StringVar(&o.instance, "instance-id", "", "client id of a static member; empty: dynamic membership")
	millis(&o.session, "session-ms", 45000, "session timeout")

	millis(&o.linger, "linger-ms", 100, "time a produced record may wait for company")
	f.IntVar(&o.batchBytes, "batch-bytes", 131072, "largest produced batch")
	f.StringVar(&o.compression, "compression", "none", "none, gzip, snappy, lz4 or zstd")
	f.IntVar(&o.pollRecords, "max-poll-records", 1000, "records taken from one poll")
	f.IntVar(&o.fetchMaxBytes, "fetch-max-bytes", 52428800, "largest fetch")
	f.IntVar(&o.partitionFetchBytes, "partition-fetch-bytes", 1048576, "largest fetch of one partition")
	f.Int64Var(&o.cacheMB, "block-cache-mb", 0, "memory for reading local state; 0: the default")
	f.Int64Var(&o.memtableMB, "memtable-mb", 0, "memory for writing local state; 0: the default")

	millis(&o.window, "window-ms", 10000, "window size")
	millis(&o.grace, "grace-ms", 1000, "grace of windows")

	f.Int64Var(&o.expect, "expect", 0, "end after this many input records; 0: run until a signal")
	f.Int64Var(&o.expectOut, "expect-out", 0, "end after this many output records instead")
	o.timeout = 600 * time.Second
	f.Func("timeout-s", "give up after so many seconds (default 600)", func(s string) error {
		d, err := time.ParseDuration(s + "s")
		o.timeout = d
		return err
	})
	millis(&o.report, "report-ms", 1000, "time between progress lines")
	f.Float64Var(&o.warm, "warm", 0.3, "share of the expected records that is warm-up")

	f.Uint64Var(&o.seed, "seed", 42, "seed of the input")
	f.Uint64Var(&o.records, "records", 1_000_000, "input records")
	f.Uint64Var(&o.keys, "keys", 10_000, "distinct keys, or words")
	f.Func("zipf", "true or false: choose keys by Zipf's law", func(s string) (err error) {
		o.zipf, err = strconv.ParseBool(s) // with a value like every flag of the peer, unlike Go's own bool flags
		return err
	})
	f.IntVar(&o.size, "value-bytes", 100, "size of a value")
	f.IntVar(&o.words, "words", 10, "words of a line")
	f.Int64Var(&o.dtMicros, "dt-us", 100, "event time between two records, microseconds")
	f.Int64Var(&o.t0, "t0-ms", 0, "event time of the first record; 0: now less the whole span")
	f.StringVar(&o.kind, "load-kind", "keyed", "keyed or lines")

	f.StringVar(&o.of, "of", "", "verify: the workload whose sink is checked")

	f.IntVar(&o.gogc, "gogc", 200, "pace of the garbage collector, unless GOGC is set")
	f.Int64Var(&o.memoryLimit, "memory-limit-mb", 150, "memory limit of the Go runtime; 0: none")
	f.StringVar(&o.cpuProfile, "cpu-profile", "", "write a CPU profile of the whole run here")
	f.StringVar(&o.memProfile, "mem-profile", "", "write a heap profile of the end of the run here")
	if err := f.Parse(args[1:]); err != nil {
		return o, fmt.Errorf("%w: %v", errUsage, err)
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%w: unexpected %q", errUsage, f.Arg(0))
	}
	return o, o.validate()
}

func (o *options) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", errUsage, fmt.Sprintf(format, args...))
	}
	switch {
	case o.guarantee != "at_least_once" && o.guarantee != "exactly_once_v2":
		return bad("--guarantee %q: at_least_once or exactly_once_v2", o.guarantee)
	case o.kind != "keyed" && o.kind != "lines":
		return bad("--load-kind %q: keyed or lines", o.kind)
	case o.threads < 1:
		return bad("--threads %d: at least 1", o.threads)
	case o.partitions < 1:
		return bad("--partitions %d: at least 1", o.partitions)
	case o.keys < 1 || o.records < 1 || o.words < 1:
		return bad("--keys, --records and --words: at least 1")
	case o.warm < 0 || o.warm >= 1:
		return bad("--warm %v: at least 0, below 1", o.warm)
	case o.commit <= 0 || o.report <= 0:
		return bad("--commit-ms and --report-ms: at least 1")
	}
	return nil
}

func (o *options) exactlyOnce() bool { return o.guarantee == "exactly_once_v2" }
