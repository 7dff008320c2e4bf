// Command millrace is the tool of who runs Millrace applications: it lists the members of an application's group, removes
// static members that will not come back, and runs the embedded cluster as a server for development.
//
// Exit status: 0 done, 1 something failed, 2 the command line is wrong. Results go to standard output, everything else to
// standard error, so that output can be piped.
package main

import (
	"context"
	"errors"
	"flag"
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
	run     func(ctx context.Context, s stdio, args []string) error
}

// verbs is the table of subcommands: a new one is a file and a line here.
var verbs = []verb{
	{"dev", "serve an embedded Kafka cluster for development and tests", runDev},
	{"expect", "say which static members a group is going to have, so that scaling costs one rebalance", runExpect},
	{"force-rebalance", "make a group of static members rebalance now", runForceRebalance},
	{"instances", "list the members of an application's group with their instance ids, hosts and tasks", runInstances},
	{"members", "list the members of any group as its coordinator sees them", runMembers},
	{"remove-members", "remove static members from a group by their instance ids", runRemoveMembers},
	{"version", "print the version", runVersion},
}

// stdio is what a verb reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
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
			return status(s, v, v.run(ctx, s, args[1:]))
		}
	}
	fmt.Fprintf(s.err, "millrace: no verb %q\n", args[0])
	printVerbs(s.err)
	return statusUsage
}

// status tells a verb's error to the user, except what has been told already.
func status(s stdio, v verb, err error) int {
	usage, isUsage := errors.AsType[usageError](err)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return statusOK
	case isUsage:
		if usage.text != "" {
			fmt.Fprintf(s.err, "millrace %s: %s\nmillrace %s -h tells the flags\n", v.name, usage.text, v.name)
		}
		return statusUsage
	case errors.Is(err, errTold):
		return statusFailed
	default:
		fmt.Fprintf(s.err, "millrace %s: %v\n", v.name, err)
		return statusFailed
	}
}

// errTold fails a verb whose output has already said what failed.
var errTold = errors.New("failed")

// usageError says what is wrong with the command line; an empty text has been told by the flag package.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

func printVerbs(w io.Writer) {
	fmt.Fprintf(w, "usage: millrace <verb> [flags]\n\n")
	for _, v := range verbs {
		fmt.Fprintf(w, "  %-16s %s\n", v.name, v.summary)
	}
	fmt.Fprintf(w, "\nmillrace <verb> -h tells the flags of a verb\n")
}

// newFlags returns a verb's flag set; synopsis shows its arguments, about says more than the verb table.
func newFlags(s stdio, name, synopsis, about string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(s.err)
	flags.Usage = func() {
		fmt.Fprintf(s.err, "usage: millrace %s %s\n\n%s\n\n", name, synopsis, about)
		flags.PrintDefaults()
	}
	return flags
}

// parse reads the flags; arguments that are left over are a mistake.
func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return usageOf(err)
	}
	if flags.NArg() > 0 {
		return usagef("unexpected argument %q", flags.Arg(0))
	}
	return nil
}

// usageOf makes a usage error of one of the flag package, which has told it already; -h is none.
func usageOf(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	return usageError{}
}
