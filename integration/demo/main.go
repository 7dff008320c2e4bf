// Command demo shows what a kill costs: nearly nothing. It runs the embedded cluster and two processes of the
// word count (wc-0 and wc-1, two stream threads each), kills one of them with SIGKILL under load, starts it again
// within the session timeout, and checks that
//
//   - the group's generation is the same and every thread has the tasks it had: nobody rebalanced;
//   - only the end of the changelog was restored: more than nothing, less than 10 % of the state;
//   - the final counts are those of a single-threaded replay of the input: exactly with -eos, and otherwise at
//     least, with a surplus of at most what was uncommitted at the kill.
//
// It takes less than a minute. Exit status 1 if anything does not hold.
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

// limit is how long the demonstration may take; without it a failure could hang.
const limit = 60 * time.Second

func main() {
	eos := flag.Bool("eos", false, "exactly-once instead of at-least-once")
	keep := flag.Bool("keep", false, "keep the directory with logs and data also when everything holds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &demo{eos: *eos, out: os.Stdout}
	err := d.run(ctx, *keep)
	if err != nil {
		d.say("FAILED: %v", err)
		os.Exit(1)
	}
	d.say("everything holds")
}

// demo is one run. Its steps are in script.go.
type demo struct {
	stage
	eos   bool
	out   *os.File
	began time.Time
}

// say prints a line of the timeline.
func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, "%6.1f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

func (d *demo) run(ctx context.Context, keep bool) (err error) {
	d.began = time.Now()
	dir, err := os.MkdirTemp("", "millrace-demo-")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil && !keep {
			os.RemoveAll(dir)
		} else {
			d.say("logs and data are in %s", dir)
		}
	}()
	d.say("building millrace and wordcount")
	if err := d.build(ctx, dir); err != nil {
		return err
	}
	d.began = time.Now() // a cold compiler is not part of the show
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %v", limit))
	defer cancel()
	defer d.killAll()
	return d.script(ctx)
}
