// Command millrace is the tool of who runs Millrace applications: it lists the members of an application's group, removes
// static members that will not come back, and runs the embedded cluster as a server for development.
//
// Exit status: 0 done, 1 something failed, 2 the command line is wrong. Results go to standard output, everything else to
// standard error, so that output can be piped. With -o json both are JSON: one value on standard output, and on standard error
// an object a line, {"note": …} or {"error": …, "hint": …}.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const (
	statusOK     = 0
	statusFailed = 1
	statusUsage  = 2
)

// verb is one subcommand. Its run function has a file of its own.
type verb struct {
	name    string
	summary string
	run     func(ctx context.Context, t *terminal, args []string) error
}

// verbs is the table of subcommands: a new one is a file and a line here.
var verbs = []verb{
	{"dev", "serve an embedded Kafka cluster for development and tests", runDev},
	{"expect", "say which static members a group is going to have, so that scaling costs one rebalance", runExpect},
	{"force-rebalance", "make a group of static members rebalance now", runForceRebalance},
	{"instances", "list the members of an application's group with their instance ids, hosts and tasks", runInstances},
	{"members", "list the members of any group as its coordinator sees them", runMembers},
	{"remove-members", "remove members from a group: those with these instance ids, or all", runRemoveMembers},
	{"version", "print the version", runVersion},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, stdio{os.Stdin, os.Stdout, os.Stderr}, os.Args[1:])
	stop()
	os.Exit(status)
}

// run finds the verb and turns its error into an exit status.
func run(ctx context.Context, s stdio, args []string) int {
	if len(args) == 0 {
		printVerbs(s.err)
		return statusUsage
	}
	if name := args[0]; name == "help" || name == "-h" || name == "-help" || name == "--help" {
		printVerbs(s.out)
		return statusOK
	}
	for _, v := range verbs {
		if v.name == args[0] {
			t := &terminal{stdio: s, verb: v.name}
			return t.status(v.run(ctx, t, args[1:]))
		}
	}
	fmt.Fprintf(s.err, "millrace: no verb %q\n", args[0])
	printVerbs(s.err)
	return statusUsage
}

func printVerbs(w io.Writer) {
	fmt.Fprintf(w, "usage: millrace <verb> [flags]\n\n")
	for _, v := range verbs {
		fmt.Fprintf(w, "  %-16s %s\n", v.name, v.summary)
	}
	fmt.Fprintf(w, "\nmillrace <verb> -h tells the flags of a verb. Exit status: 0 done, 1 something failed, 2 the command line is wrong.\n")
}
