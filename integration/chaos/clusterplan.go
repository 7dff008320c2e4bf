package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Points of the embedded cluster (integration/cluster/crash.go) at which it is killed.
const (
	atEndTxn   = "end-txn"
	atEndedTxn = "ended-txn"
	atAppend   = "append"
	atAppended = "appended"

	atRecoveryFences = "recovery-fences"
	atRecoveryMarker = "recovery-marker"
	atRecoveryIndex  = "recovery-index"
	atFence          = "fence"
	atLoad           = "load"
)

// inStart says whether a point is one of a start, before anything is served.
func inStart(point string) bool {
	return slices.Contains([]string{atRecoveryFences, atRecoveryMarker, atRecoveryIndex, atFence, atLoad}, point)
}

// clusterPlan draws n deaths of the cluster. Of ten, two are timed, two between two markers of a transaction, three in the
// start that follows another, and the others before an answer that depends on what was written.
func clusterPlan(rng *rand.Rand, n int, exact bool) []kill {
	kills := make([]kill, 0, n)
	for i := range n {
		k := clusterKill(rng, i%10)
		if !exact {
			k = withoutTransactions(rng, k)
		}
		if rng.IntN(4) == 0 {
			k.away = time.Duration(rng.IntN(3000)) * time.Millisecond
		}
		k.torn = rng.IntN(4) == 0
		kills = append(kills, k)
	}
	return kills
}

func clusterKill(rng *rand.Rand, turn int) kill {
	nth := 1 + rng.IntN(25)
	switch turn {
	case 0, 3:
		return kill{point: atEndTxn, nth: nth, markers: 1 + rng.IntN(3)}
	case 1:
		return kill{point: atRecoveryMarker, nth: 1 + rng.IntN(4)}
	case 4:
		return kill{point: atRecoveryIndex, nth: 1 + rng.IntN(4)}
	case 7:
		starts := []string{atRecoveryFences, atFence, atLoad}
		return kill{point: starts[rng.IntN(len(starts))], nth: 1}
	case 5:
		return kill{point: atAppended, nth: nth}
	case 6:
		return kill{point: atEndedTxn, nth: nth}
	case 8:
		return kill{point: atAppend, nth: nth, delay: micros(rng, 200)}
	default: // 2, 9
		return kill{delay: time.Duration(100+rng.IntN(1500)) * time.Millisecond}
	}
}

// withoutTransactions replaces points that only transactions reach.
func withoutTransactions(rng *rand.Rand, k kill) kill {
	switch k.point {
	case atEndTxn, atEndedTxn:
		return kill{delay: time.Duration(100+rng.IntN(1500)) * time.Millisecond}
	case atRecoveryMarker, atRecoveryIndex:
		return kill{point: atLoad, nth: 1}
	}
	return k
}
