package pebblestore_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/pebblestore"
)

// writerVariable tells the test binary to be the process that is killed.
const writerVariable = "PEBBLESTORE_TEST_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerVariable); dir != "" {
		if err := write(dir); err != nil {
			fmt.Println("error:", err)
		}
		os.Exit(1) // it is to be killed, not to end
	}
	os.Exit(m.Run())
}

var killSpecs = []statestore.Spec{
	{Name: "table", Logged: true},
	{Name: "windows", Kind: statestore.Window, Logged: true, WindowSize: 10_000, Retention: 120_000},
}

const (
	killKeys  = 97
	valueSize = 2_000 // so that memtables of a megabyte fill up all the time
)

// In commit n, for n from 1, the keys of killKeysOf(n) get killValue(n) in both stores, in windows that begin at
// killStart(n), and both offsets become n. So an offset says what everything must be.

func killKeysOf(n int64) []string {
	keys := make([]string, 5+n%40)
	for i := range keys {
		keys[i] = fmt.Sprint("key ", (n*31+int64(i))%killKeys)
	}
	return keys
}

func killValue(n int64) string { return strings.Repeat(strconv.FormatInt(n, 10)+" ", valueSize/8) }

func killStart(n int64) int64 { return n * 100 / 10_000 * 10_000 }

// write commits for ever, going on from what is there, and prints each number that is durable for sure.
func write(dir string) error {
	shared := pebblestore.NewShared(pebblestore.Config{MemoryBudget: 8 << 20})
	engine, err := shared.Open(dir)
	if err != nil {
		return err
	}
	s, err := statestore.OpenState(engine, killSpecs, statestore.StateOptions{})
	if err != nil {
		return err
	}
	kv, _ := s.KeyValue("table")
	w, _ := s.Window("windows")
	n, _ := s.Offset("table")
	for {
		n++
		for _, key := range killKeysOf(n) {
			if err := kv.Put([]byte(key), []byte(killValue(n)), n); err != nil {
				return err
			}
			if err := w.Put([]byte(key), killStart(n), []byte(killValue(n)), n); err != nil {
				return err
			}
		}
		if err := s.Commit([]statestore.Offset{{Store: "table", Next: n}, {Store: "windows", Next: n}}); err != nil {
			return err
		}
		if n%50 == 0 {
			if err := s.Flush(noDeadline); err != nil {
				return err
			}
			fmt.Println(n)
		}
	}
}

// TestKillLeavesAPrefix kills a writing process with SIGKILL again and again, on real files, and finds each time the
// exact content of the commit that the offset names, and no commit missing that was flushed.
func TestKillLeavesAPrefix(t *testing.T) {
	dir, rounds := t.TempDir(), 8
	if testing.Short() {
		rounds = 3
	}
	durable := int64(0)
	for round := range rounds {
		durable = max(durable, killWriter(t, dir, 1+round%4, round*700))
		found := checkPrefix(t, dir)
		if found < durable {
			t.Fatalf("round %d: the state is at commit %d, though %d was flushed", round, found, durable)
		}
	}
}

// killWriter lets a process write until it has flushed some times, and a bit longer, and kills it. It returns the last
// commit that it reported as durable.
func killWriter(t *testing.T, dir string, flushes, spin int) (durable int64) {
	t.Helper()
	writer := exec.Command(os.Args[0])
	writer.Env = append(os.Environ(), writerVariable+"="+dir)
	out, err := writer.StdoutPipe()
	must(t, err)
	must(t, writer.Start())
	lines := bufio.NewScanner(out)
	for i := 0; lines.Scan(); i++ {
		n, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			t.Fatalf("the writer says %q", lines.Text())
		}
		durable = n
		if i < flushes {
			continue
		}
		// Work of varying length, so that the kill falls into different moments of the writer's.
		for range spin {
			_ = killValue(n)
		}
		must(t, writer.Process.Kill())
	}
	if err := writer.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the writer ended with %v, want that it was killed", err)
	}
	return durable
}

// checkPrefix opens what a killed writer left and compares everything with what its offset says.
func checkPrefix(t *testing.T, dir string) int64 {
	t.Helper()
	shared := pebblestore.NewShared(pebblestore.Config{})
	defer shared.Close()
	engine, err := shared.Open(dir)
	must(t, err)
	s, err := statestore.OpenState(engine, killSpecs, statestore.StateOptions{})
	must(t, err)
	n, _ := s.Offset("table")
	if other, _ := s.Offset("windows"); other != n || s.Seq() != uint64(n) {
		t.Errorf("offsets %d and %d in commit %d: they are not of one commit", n, other, s.Seq())
	}
	table, windows := map[string]int64{}, map[string]int64{} // key, or key and start -> last commit
	for i := int64(1); i <= n; i++ {
		for _, key := range killKeysOf(i) {
			table[key] = i
			windows[fmt.Sprint(key, "/", killStart(i))] = i
		}
	}
	checkTable(t, s, table)
	checkWindows(t, s, windows, killStart(n))
	must(t, s.Close(t.Context()))
	return n
}

func checkTable(t *testing.T, s *statestore.State, want map[string]int64) {
	t.Helper()
	kv, err := s.KeyValue("table")
	must(t, err)
	seen := 0
	must(t, kv.Range(nil, nil, func(key, value []byte, ts int64) bool {
		seen++
		if i := want[string(key)]; ts != i || string(value) != killValue(i) {
			t.Errorf("%s is of commit %d, want %d", key, ts, i)
		}
		return true
	}))
	if seen != len(want) {
		t.Errorf("%d keys, want %d", seen, len(want))
	}
}

func checkWindows(t *testing.T, s *statestore.State, want map[string]int64, observed int64) {
	t.Helper()
	w, err := s.Window("windows")
	must(t, err)
	if len(want) > 0 && w.ObservedTime() != observed {
		t.Errorf("observed time %d, want %d", w.ObservedTime(), observed)
	}
	live := 0
	for at := range want {
		start, err := strconv.ParseInt(at[strings.IndexByte(at, '/')+1:], 10, 64)
		must(t, err)
		if start > observed-killSpecs[1].Retention {
			live++
		}
	}
	seen := 0
	for k := range killKeys {
		key := fmt.Sprint("key ", k)
		must(t, w.Fetch([]byte(key), 0, 1<<60, func(start int64, value []byte, ts int64) bool {
			seen++
			if i := want[fmt.Sprint(key, "/", start)]; ts != i || string(value) != killValue(i) {
				t.Errorf("%s in window %d is of commit %d, want %d", key, start, ts, i)
			}
			return true
		}))
	}
	if seen != live {
		t.Errorf("%d live windows, want %d", seen, live)
	}
}
