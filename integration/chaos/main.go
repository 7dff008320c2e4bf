// Command chaos kills parts of a word count with SIGKILL again and again, under load, and compares output and state
// with a replay.
//
//	go run ./integration/chaos [-kind kill-eos] [-n 100] [-seed 1] [-check-every 5]
//
// The embedded cluster and the word counts are processes of their own.
//
// # kill-eos
//
// The word count is killed, under exactly-once. A kill is either aimed or timed. Aimed: the word count kills itself when
// it reaches a named point of the commit protocol, of a restore or of the flush of a graceful stop, some microseconds
// later; so it dies in an open transaction, between the transaction's commit and its own, in a restore, in a flush.
// Timed: at a random moment. Some restarts find the state directory wiped, so that everything is restored.
//
// # kill-cluster, kill-cluster-alos
//
// The cluster is killed while two word counts of two threads each run on it, and is started again on the same address
// and directory, at once or after a while. The word counts have to go on by themselves. Aimed: the cluster kills itself
// between two markers of a transaction, before the first or after the last, before or after it has appended records of
// its group coordinator, and, when that was not long ago, again in the recovery. Timed: at a random moment. Some restarts
// find half a batch at the end of a log. With kill-cluster-alos the word counts run under at-least-once.
//
// # What is compared
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
// When the cluster is killed, also that the input holds each line once, that no word count has ended, and that the group
// is in the generation of the beginning. Under at-least-once words may be counted twice, and none may be missing.
//
// A failure prints the seed; the same seed gives the same kills in the same order. Exit status 1 on any
// difference, or if N >= 100 and fewer than ten kills hit each of the aimed places.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Kinds of runs.
const (
	killEOS         = "kill-eos"
	killCluster     = "kill-cluster"
	killClusterALOS = "kill-cluster-alos"
)

func main() {
	if status, ok := childMain(os.Args[1:]); ok {
		os.Exit(status)
	}
	kind := flag.String("kind", killEOS, "what is done: kill-eos, kill-cluster or kill-cluster-alos")
	n := flag.Int("n", 100, "kills")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the plan")
	every := flag.Int("check-every", 5, "kills between two comparisons")
	flag.Parse()
	if *n < 1 || *every < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "chaos: -n and -check-every must be at least 1, and there are no arguments")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rng := rand.New(rand.NewPCG(*seed, 1))
	s := &stage{seed: *seed, exact: *kind != killClusterALOS, out: func(line string) { fmt.Println(line) }}
	var err error
	switch *kind {
	case killEOS:
		err = s.perform(ctx, 1, (&workerRun{stage: s, n: *n, every: *every, rng: rng, hits: map[string]int{}}).play)
	case killCluster, killClusterALOS:
		err = s.perform(ctx, 2, (&clusterRun{stage: s, every: *every, kills: clusterPlan(rng, *n, s.exact), hits: map[string]int{}}).play)
	default:
		fmt.Fprintln(os.Stderr, "chaos: -kind must be kill-eos, kill-cluster or kill-cluster-alos")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: FAILED: %v\nrepeat with: go run ./integration/chaos -kind %s -n %d -check-every %d -seed %d\n", err, *kind, *n, *every, *seed)
		os.Exit(1)
	}
}
