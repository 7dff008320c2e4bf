package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// This program is also the processes that it kills.
const (
	workerVerb  = "worker"
	clusterVerb = "cluster"
)

// toParent opens the pipe in which they tell the points that they reach. There is one *os.File of it: the collector would
// close the descriptor with another one.
var toParent = sync.OnceValue(func() *os.File { return os.NewFile(3, "points") })

// childMain runs one of those processes, if that is what the arguments ask for, and returns its exit status.
func childMain(args []string) (status int, ok bool) {
	if len(args) == 0 || args[0] != workerVerb && args[0] != clusterVerb {
		return 0, false
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	run := work
	if args[0] == clusterVerb {
		run = serve
	}
	f := flag.NewFlagSet(args[0], flag.ExitOnError)
	if err := run(ctx, f, args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, args[0]+":", err)
		return 1, true
	}
	return 0, true
}

// killFlags are the plan for a process' death.
func killFlags(f *flag.FlagSet) *kill {
	var k kill
	f.StringVar(&k.point, "point", "", "")
	f.IntVar(&k.nth, "nth", 0, "")
	f.DurationVar(&k.delay, "delay", 0, "")
	f.IntVar(&k.markers, "markers", 0, "")
	return &k
}

// childLogger logs to standard error, tells the points to the parent, and dies at the one that is planned.
func childLogger(k kill, die func(kill)) *slog.Logger {
	return slog.New(&pointHandler{Handler: slog.NewTextHandler(os.Stderr, nil), to: toParent(), kill: k, die: die})
}

// dieAfter ends the process as kill -9 does, at once or while it goes on. It spins, because a timer is coarser than the
// windows that are aimed at.
func dieAfter(k kill) {
	if k.delay == 0 {
		die()
	}
	go func() {
		for began := time.Now(); time.Since(began) < k.delay; {
		}
		die()
	}()
}

// die does not return.
func die() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
