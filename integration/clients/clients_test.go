package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-io/millrace/integration/proc"
)

// runEnv asks for the matrix and names the brokers to play it against: it needs a JDK, Maven, Node.js and Python, and
// downloads the clients once.
const runEnv = "MILLRACE_CLIENTS"

// programTimeout bounds one client's program.
const programTimeout = 15 * time.Minute

// TestClients plays the matrix against each broker that is asked for and prints it.
func TestClients(t *testing.T) {
	if os.Getenv(runEnv) == "" {
		t.Skipf("other people's clients need a JDK, Maven, Node.js and Python and are downloaded once: run make test-clients, or set %s=kafka,kip345", runEnv)
	}
	millrace, err := proc.Build(t.Context(), t.TempDir(), "cmd/millrace")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range wanted(t) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			all := map[string]results{}
			t.Cleanup(func() {
				played := slices.DeleteFunc(slices.Clone(matrix), func(c client) bool { return all[c.label()] == nil })
				fmt.Printf("\n%s\n\n%s\n", b.title, render(played, b.name, func(c client) results { return all[c.label()] }))
			})
			for _, c := range matrix {
				if len(c.expected(b.name)) == 0 {
					continue
				}
				t.Run(c.slug(), func(t *testing.T) {
					t.Parallel() // each has a cluster of its own, and most of the time is waiting
					got := c.test(t, b, millrace)
					mu.Lock()
					defer mu.Unlock()
					all[c.label()] = got
				})
			}
		})
	}
}

// test plays one client's cases against a cluster of its own and reports each that is not as expected.
func (c client) test(t *testing.T, b broker, millrace string) results {
	start := func(context.Context, endpoint, string) *exec.Cmd { return nil }
	if c.prepare != nil {
		start = c.prepare(t)
	}
	at := b.start(t, millrace, c.slug())
	var lines []result
	if c.play != nil {
		lines = c.play(t, at)
	} else {
		lines = runProgram(t, func(ctx context.Context, dir string) *exec.Cmd { return start(ctx, at, dir) })
	}
	got := c.verify(t, at.addr, lines)
	for _, tc := range cases {
		if !c.plays(b.name, tc) {
			continue
		}
		if why := c.unexpected(tc.name, got[tc.name]); why != "" {
			t.Errorf("%s: %s", tc.name, why)
		}
	}
	for _, complaint := range at.finish() {
		t.Errorf("the cluster says: %s", complaint)
	}
	return got
}

// runProgram runs a client's program to its end and reads its results. What it writes to standard error is shown when
// something failed.
func runProgram(t *testing.T, start func(ctx context.Context, dir string) *exec.Cmd) (lines []result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), programTimeout)
	defer cancel()
	cmd := start(ctx, t.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	failed := err != nil
	for line := range strings.Lines(stdout.String()) {
		var r result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Errorf("the program printed %q, which is no result: %v", line, err)
			continue
		}
		failed = failed || r.Error != ""
		lines = append(lines, r)
	}
	if err != nil {
		t.Errorf("the program ended with %v", err)
	}
	if failed {
		t.Logf("the program's standard error:\n%s", tail(stderr.String(), 30))
	}
	return lines
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// verify has the cluster confirm what the client says.
func (c client) verify(t *testing.T, addr string, lines []result) results {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := results{}
	for _, r := range lines {
		var err error
		if check := checks[r.Case]; r.OK && check != nil {
			err = check(ctx, c, addr)
		} else if r.Limit == noStatic {
			err = stayedDynamic(ctx, addr, r.Case)
		}
		if err != nil {
			r = result{Case: r.Case, Error: "in the cluster: " + err.Error()}
		}
		got[r.Case] = r
	}
	return got
}
