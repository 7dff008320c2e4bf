package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"syscall"
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if err == nil {
		err = profiled(o, run)
	}
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs one workload.
func run(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(o.gogc)
	}
	if o.memoryLimit > 0 {
		debug.SetMemoryLimit(o.memoryLimit << 20)
	}
	m := &meter{o: o, w: os.Stdout}
	err := runWorkload(ctx, o, m)
	if err != nil {
		m.emit(field{"ev", "failed"}, field{"workload", o.workload}, field{"error", err.Error()})
	}
	return err
}

func runWorkload(ctx context.Context, o options, m *meter) error {
	switch o.workload {
	case "load":
		return load(ctx, o, m)
	case "verify":
		return runVerify(ctx, o, m)
	}
	if err := createRunTopics(ctx, o); err != nil {
		return err
	}
	m.emit(field{"ev", "start"}, field{"workload", o.workload}, field{"t_ms", sinceStart()})
	switch o.workload {
	case "raw":
		return runByHand(ctx, o, m, func() byHand { return copying{o.out} })
	case "rawcount":
		return runByHand(ctx, o, m, func() byHand { return newCounting(o) })
	case "pass", "count", "windowed", "wordcount":
		return runStreams(ctx, o, m)
	default:
		return fmt.Errorf("%w: unknown workload %q", errUsage, o.workload)
	}
}

// profiled runs fn with the CPU profile that was asked for.
func profiled(o options, fn func(options) error) error {
	if o.cpuProfile != "" {
		f, err := os.Create(o.cpuProfile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	return fn(o)
}

// heapProfile writes what is in use when the last record is counted, and what was allocated until then.
func heapProfile(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
}

// runVerify compares the sink of the workload --of with its replay.
func runVerify(ctx context.Context, o options, m *meter) error {
	want, err := newReplay(o, o.of)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return verify(ctx, o, m, want)
}
