// Command suite runs the benchmarks side by side: Kafka Streams and Millrace in turn, every run on a fresh
// broker, and prints the ratios.
//
//	go run ./integration/bench/suite [-side both|go|peer] [-scale 1] [-reps 1] [-guarantee at_least_once]
//	        [-commit-ms 1000] [-o bench.jsonl] [workload ...]
//	go run ./integration/bench/suite -table bench.jsonl [more.jsonl ...]
//
// The broker is pinned to processor 1, the application to processor 0 (-pin=false leaves both free). The
// input is deterministic; -scale 1 is 3 million keyed records, or 300,000 lines of ten words. After each run
// the sink is compared with a replay of the input; a run that differs is void: it is reported, leaves no line
// in the result and makes the exit status 1. The order of the sides alternates from one repetition to the
// next. Lines are appended to -o, so that several suites make one table.
//
// It needs a JDK 17 or newer, Maven for the first run, and taskset unless -pin=false.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/millrace-io/millrace/integration/kafka"
	"github.com/millrace-io/millrace/integration/peer"
)

// workloads are what both sides have, and rawcount, which is the limit of our own.
var workloads = []string{"raw", "rawcount", "pass", "count", "windowed", "wordcount"}

type settings struct {
	side, guarantee, out, app string
	commitMS, reps            int
	scale                     float64
	pin, table                bool
	profiles                  string
}

func main() {
	var s settings
	flag.StringVar(&s.side, "side", "both", "both, go or peer")
	flag.StringVar(&s.guarantee, "guarantee", "at_least_once", "at_least_once or exactly_once_v2")
	flag.IntVar(&s.commitMS, "commit-ms", 1000, "commit interval, milliseconds")
	flag.IntVar(&s.reps, "reps", 1, "repetitions")
	flag.Float64Var(&s.scale, "scale", 1, "1 is 3 million records")
	flag.StringVar(&s.out, "o", "bench.jsonl", "file that result lines are appended to")
	flag.StringVar(&s.app, "app", "", "compiled benchmark program; empty: built from this module")
	flag.BoolVar(&s.pin, "pin", true, "pin the broker to processor 1 and the application to processor 0")
	flag.BoolVar(&s.table, "table", false, "print the table of the named result files and end")
	flag.StringVar(&s.profiles, "profiles", "", "directory for CPU profiles of our own side")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings, args []string) error {
	if s.table {
		return printTable(os.Stdout, args)
	}
	if len(args) == 0 {
		args = workloads
	}
	for _, w := range args {
		if !slices.Contains(workloads, w) {
			return fmt.Errorf("no workload %q: choose from %s", w, strings.Join(workloads, " "))
		}
	}
	r, err := newRunner(ctx, s)
	if err != nil {
		return err
	}
	defer r.close()
	var void error
	for rep := range s.reps {
		for _, w := range args {
			for _, side := range s.sides(rep) {
				if side == "peer" && w == "rawcount" {
					continue
				}
				if err := r.one(ctx, rep+1, side, w); err != nil {
					void = errors.Join(void, fmt.Errorf("%s %s is void: %w", side, w, err))
				}
				if ctx.Err() != nil {
					return errors.Join(void, ctx.Err())
				}
			}
		}
	}
	return errors.Join(void, printTable(os.Stdout, []string{s.out}))
}

// sides alternates the order, so that a machine that slows down favours nobody.
func (s settings) sides(rep int) []string {
	switch {
	case s.side != "both":
		return []string{s.side}
	case rep%2 == 0:
		return []string{"peer", "go"}
	default:
		return []string{"go", "peer"}
	}
}

func newRunner(ctx context.Context, s settings) (*runner, error) {
	if s.side != "both" && s.side != "go" && s.side != "peer" {
		return nil, fmt.Errorf("-side %q: both, go or peer", s.side)
	}
	dir, err := kafka.RunDir()
	if err != nil {
		return nil, err
	}
	r := &runner{settings: s, dir: dir}
	if r.work, err = os.MkdirTemp("", "millrace-bench-"); err != nil {
		return nil, err
	}
	if r.app == "" { // also loads and verifies, whichever side runs
		r.app = filepath.Join(r.work, "bench")
		build := exec.CommandContext(ctx, "go", "build", "-o", r.app, "github.com/millrace-io/millrace/integration/bench")
		if text, err := build.CombinedOutput(); err != nil {
			r.close()
			return nil, fmt.Errorf("build the benchmark program: %w\n%s", err, text)
		}
	}
	if s.side != "go" {
		if r.peer, err = peer.Compile(ctx, dir); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}
