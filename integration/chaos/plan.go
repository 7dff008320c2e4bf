package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Kills are counted by what they interrupted.
const (
	inTransaction = "open transaction"
	inMarkers     = "between markers"
	inRecovery    = "recovery"
	afterCommit   = "between commit and state"
	inRestore     = "restore"
	inFlush       = "flush"
	elsewhere     = "elsewhere"
)

// classOf says what is interrupted at a point. The points are those that stream threads log at debug level.
func classOf(point string) string {
	switch point {
	case "txn", "C0", "C1", "C2", "C4":
		return inTransaction
	case "C5":
		return afterCommit
	case "restore":
		return inRestore
	case "flush":
		return inFlush
	default: // C6: everything is in place
		return elsewhere
	}
}

// kill is one planned death.
type kill struct {
	point string        // where; empty: at a moment
	nth   int           // the how many-eth time the point is reached
	delay time.Duration // after that, or after the start
	wipe  bool          // the state directory is removed before the start

	// Of the cluster.
	markers int           // how many markers are written behind the point
	away    time.Duration // how long it stays dead
	torn    bool          // half a batch is left at the end of a log
}

func (k kill) String() string {
	more := ""
	if k.wipe {
		more = ", state wiped before"
	}
	if k.away > 0 {
		more += fmt.Sprintf(", %v away", k.away)
	}
	switch {
	case k.point == "":
		return fmt.Sprintf("%v after the start%s", k.delay.Round(time.Millisecond), more)
	case k.markers > 0:
		return fmt.Sprintf("%d markers after %s no. %d%s", k.markers, k.point, k.nth, more)
	}
	return fmt.Sprintf("%v after %s no. %d%s", k.delay, k.point, k.nth, more)
}

// plan draws n kills. A third is timed; of the rest each class has a fixed share, so that none is left to luck.
func plan(rng *rand.Rand, n int) []kill {
	kills := make([]kill, 0, n)
	for i := range n {
		switch i % 20 {
		case 0, 4, 8, 12, 16, 18:
			kills = append(kills, timed(rng))
		case 1, 6, 11:
			kills = append(kills, restoring(rng))
		case 3, 9, 14:
			kills = append(kills, flushing(rng))
		case 5, 17:
			kills = append(kills, kill{point: "C5", nth: 1 + rng.IntN(12), delay: micros(rng, 300)})
		case 13:
			kills = append(kills, kill{point: "C6", nth: 1 + rng.IntN(12), delay: micros(rng, 300)})
		default:
			points := []string{"txn", "C0", "C1", "C2", "C4"}
			kills = append(kills, kill{point: points[rng.IntN(len(points))], nth: 1 + rng.IntN(12), delay: micros(rng, 2000)})
		}
	}
	rng.Shuffle(n, func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	return kills
}

func timed(rng *rand.Rand) kill {
	return kill{delay: time.Duration(rng.IntN(1500)) * time.Millisecond, wipe: rng.IntN(6) == 0}
}

func restoring(rng *rand.Rand) kill {
	k := kill{point: "restore", nth: 1, delay: micros(rng, 1500), wipe: rng.IntN(2) == 0}
	if k.wipe { // every partition restores: any of them may be the one
		k.nth += rng.IntN(partitions)
	}
	return k
}

func flushing(rng *rand.Rand) kill {
	return kill{point: "flush", nth: 1 + rng.IntN(2), delay: micros(rng, 3000)}
}

// micros is a delay below max microseconds.
func micros(rng *rand.Rand, max int) time.Duration {
	return time.Duration(rng.IntN(max)) * time.Microsecond
}
