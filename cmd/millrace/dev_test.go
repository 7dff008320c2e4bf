package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A devRun is "millrace dev" in this process.
type devRun struct {
	addr string
	stop context.CancelFunc
	done chan int // its exit status
	err  bytes.Buffer
}

func startDev(t *testing.T, args ...string) *devRun {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	r := &devRun{stop: stop, done: make(chan int, 1)}
	go func() {
		r.done <- run(ctx, stdio{nil, in, &r.err}, append([]string{"dev", "-listen", "127.0.0.1:0"}, args...))
		in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n') // printed when it serves
	if err != nil {
		t.Fatalf("dev ended with status %d before it served:\n%s", <-r.done, &r.err)
	}
	r.addr = strings.TrimSpace(line)
	return r
}

// end interrupts it and returns what it said.
func (r *devRun) end(t *testing.T) string {
	t.Helper()
	r.stop()
	select {
	case status := <-r.done:
		if status != statusOK {
			t.Errorf("dev ended with status %d", status)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("dev did not stop")
	}
	return r.err.String()
}

func TestDevServesAndKeepsItsData(t *testing.T) {
	dir := t.TempDir()
	first := startDev(t, "-data-dir", dir, "-topic", "lines:3", "-partitions", "2")
	cl, err := kgo.NewClient(kgo.SeedBrokers(first.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopic(t.Context(), -1, -1, nil, "made"); err != nil {
		t.Fatal(err)
	}
	topics, err := adm.ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(topics["lines"].Partitions) != 3 || len(topics["made"].Partitions) != 2 {
		t.Errorf("topics are %+v", topics)
	}
	said := first.end(t)
	for _, want := range []string{"bootstrap.servers=" + first.addr, "data: " + dir, "stopping"} {
		if !strings.Contains(said, want) {
			t.Errorf("dev did not say %q but\n%s", want, said)
		}
	}

	if err := os.Remove(filepath.Join(dir, "cluster.clean")); err != nil { // as after a kill
		t.Fatal(err)
	}
	second := startDev(t, "-data-dir", dir, "-profile", "kip345")
	if said := second.end(t); !strings.Contains(said, "the last stop was not orderly; there was nothing to recover") {
		t.Errorf("dev did not say that it recovered but\n%s", said)
	}
}

func TestDevRefusals(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, test := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"address without port": {[]string{"-listen", "nowhere"}, statusFailed, `missing port in address`},
		"address in use":       {[]string{"-listen", taken.Addr().String()}, statusFailed, `address already in use.*choose a free port`},
		"topic without number": {[]string{"-topic", "lines"}, statusUsage, `want name:partitions`},
		"topic of no part":     {[]string{"-topic", "lines:0"}, statusUsage, `number of partitions from 1`},
		"unknown profile":      {[]string{"-profile", "java"}, statusUsage, `-profile`},
		"no partitions":        {[]string{"-listen", "127.0.0.1:0", "-partitions", "0"}, statusFailed, `default partitions 0`},
		"argument":             {[]string{"now"}, statusUsage, `unexpected argument "now"`},
	} {
		t.Run(name, func(t *testing.T) {
			var out, said bytes.Buffer
			if got := run(t.Context(), stdio{nil, &out, &said}, append([]string{"dev"}, test.args...)); got != test.status {
				t.Errorf("status %d, want %d", got, test.status)
			}
			if !regexp.MustCompile(test.want).MatchString(said.String()) {
				t.Errorf("said %q, want %s", said.String(), test.want)
			}
		})
	}
}

func TestLoopback(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:9092": true, "localhost:0": true, "[::1]:9092": true, "127.8.9.10:1": true,
		"0.0.0.0:9092": false, ":9092": false, "10.0.0.1:9092": false, "[::]:1": false, "example.org:1": false,
	} {
		if got := loopback(listen); got != want {
			t.Errorf("loopback(%q) is %v", listen, got)
		}
	}
}
