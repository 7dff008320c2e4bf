//go:build unix

package cluster_test

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/millrace-io/millrace/integration/cluster"
)

// serveEnv tells a copy of the test program to be the cluster that is measured, in the directory that it names.
const serveEnv = "MILLRACE_BENCH_SERVE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveEnv); dir != "" {
		if err := serveBench(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveBench runs a cluster, prints its address, and answers each line of its input with the processor time it has used.
func serveBench(dir string) error {
	runtime.GOMAXPROCS(1)
	c, err := cluster.Start(cluster.DataDir(dir), cluster.Topic("bench", 4), cluster.InitialRebalanceDelay(time.Second))
	if err != nil {
		return err
	}
	fmt.Println(c.Brokers()[0])
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			return err
		}
		fmt.Println(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return c.Close()
}
