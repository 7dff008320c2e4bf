// Command chaos kills a word count with SIGKILL again and again, under exactly-once and under load, and compares
// output and state with a replay.
//
//	go run ./integration/chaos [-kind kill-eos] [-n 100] [-seed 1] [-check-every 5]
//
// The embedded cluster (millrace dev) and the word count are processes of their own. A kill is either aimed or
// timed. Aimed: the word count kills itself when it reaches a named point of the commit protocol, of a restore or
// of the flush of a graceful stop, some microseconds later; so it dies in an open transaction, between the
// transaction's commit and its own, in a restore, in a flush. Timed: at a random moment. Some restarts find the
// state directory wiped, so that everything is restored.
//
// After every -check-every kills, and at the end, the input is counted to its end, and then compared, all of it
// since the start:
//
//   - the repartition topic, as a multiset by partition, with the words of the input;
//   - the sink, in order by partition, with the running counts over the committed repartition topic;
//   - the changelog's last values, and the state that a query sees, with the totals;
//   - the state again after a graceful restart, and after a restore into an empty directory (at the end);
//   - and no transaction is left open.
//
// A failure prints the seed; the same seed gives the same kills in the same order. Exit status 1 on any
// difference, or if N >= 100 and fewer than ten kills hit each of open transaction, restore and flush.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerVerb {
		os.Exit(workerMain(os.Args[2:]))
	}
	kind := flag.String("kind", "kill-eos", "what is done: kill-eos")
	n := flag.Int("n", 100, "kills")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the plan")
	every := flag.Int("check-every", 5, "kills between two comparisons")
	flag.Parse()
	if *kind != "kill-eos" || *n < 1 || *every < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "chaos: -kind must be kill-eos, -n and -check-every at least 1, and there are no arguments")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := newRun(*seed, *n, *every)
	if err := r.run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "chaos: FAILED: %v\nrepeat with: go run ./integration/chaos -kind %s -n %d -check-every %d -seed %d\n", err, *kind, *n, *every, *seed)
		os.Exit(1)
	}
}
