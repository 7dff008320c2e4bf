package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test program be the processes that are killed.
func TestMain(m *testing.M) {
	if status, ok := childMain(os.Args[1:]); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// The cluster is killed with SIGKILL under two processes with exactly-once: between two markers of a transaction, in the recovery
// from that, again in the recovery from that one, and around the answers that depend on what was written. They go on by
// themselves, in the same generation, and what they leave is the replay.
func TestClusterKilledUnderExactlyOnce(t *testing.T) {
	kills := []kill{
		{point: atEndTxn, nth: 5, markers: 2},
		{point: atRecoveryMarker, nth: 2},
		{point: atRecoveryIndex, nth: 1, torn: true},
		{point: atEndTxn, nth: 9, markers: 3},
		{point: atAppended, nth: 12},
		{point: atFence, nth: 1},
		{point: atEndTxn, nth: 7, markers: 1, away: 500 * time.Millisecond},
		{point: atEndedTxn, nth: 6, torn: true},
	}
	if testing.Short() {
		kills = kills[:4]
	}
	hits := runKills(t, true, kills)
	if hits[inMarkers] == 0 {
		t.Error("no kill was between the markers of a transaction")
	}
}

// Under at-least-once nothing is missing.
func TestClusterKilledUnderAtLeastOnce(t *testing.T) {
	runKills(t, false, []kill{
		{delay: 500 * time.Millisecond},
		{point: atLoad, nth: 1, torn: true},
		{point: atAppend, nth: 9},
	})
}

// runKills plays a run and returns what its kills hit.
func runKills(t *testing.T, exact bool, kills []kill) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	s := &stage{seed: 1, exact: exact, out: func(line string) { t.Log(strings.TrimSpace(line)) }}
	r := &clusterRun{stage: s, every: len(kills), kills: kills, hits: map[string]int{}}
	if err := s.perform(ctx, 2, r.play); err != nil {
		t.Fatal(err)
	}
	return r.hits
}
