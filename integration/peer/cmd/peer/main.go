// Command peer runs one workload of the Java peer, Kafka Streams, against a broker:
//
//	go run ./integration/peer/cmd/peer count --bootstrap 127.0.0.1:9092 --expect 1000000
//
// Workloads and flags are those of Peer.java; JSON lines go to stdout. It needs a JDK 17 or newer and, for the
// first run, Maven. Exit status: that of the peer.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/millrace-io/millrace/integration/kafka"
	"github.com/millrace-io/millrace/integration/peer"
)

func main() {
	err := run(os.Args[1:])
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := kafka.RunDir()
	if err != nil {
		return err
	}
	p, err := peer.Compile(ctx, dir)
	if err != nil {
		return err
	}
	cmd := p.Command(ctx, nil, nil, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // its shutdown hook closes Streams
	return cmd.Run()
}
