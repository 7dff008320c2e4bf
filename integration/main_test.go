package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/millrace-io/millrace/integration/cluster"
)

// workerEnv tells a copy of the test program to be a word count instead: its value is the configuration.
const workerEnv = "MILLRACE_TEST_WORKER"

var (
	bootstrap []string         // the brokers that the tests use
	embedded  *cluster.Cluster // they are this cluster; nil if a cluster is named
)

// TestMain starts the embedded cluster, unless a cluster is named.
func TestMain(m *testing.M) {
	if config, ok := os.LookupEnv(workerEnv); ok {
		os.Exit(workerMain(config))
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	if named := os.Getenv("KAFKA_BOOTSTRAP"); named != "" {
		bootstrap = strings.Split(named, ",")
		return m.Run()
	}
	c, err := cluster.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer c.Close()
	bootstrap, embedded = c.Brokers(), c
	return m.Run()
}
