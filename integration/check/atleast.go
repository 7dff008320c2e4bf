package check

import (
	"fmt"
	"slices"
)

// Under at-least-once nothing may be missing, and anything may be there more often.

// NothingMissing compares partition by partition without regard to order: each record at least as often as wanted. The error
// is a *Difference.
func NothingMissing(name string, got, want Topic) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s has %d partitions, want %d", name, len(got), len(want))
	}
	for p := range want {
		left := map[string]int{}
		for _, r := range got[p] {
			left[identity(r)]++
		}
		for _, r := range want[p] {
			if left[identity(r)]--; left[identity(r)] < 0 {
				return &Difference{Topic: name, Partition: p, At: -1, Kind: "lost", Detail: r.String() + " is there too seldom"}
			}
		}
	}
	return nil
}

// NothingBelow compares counts: each key's at least as high as wanted, and no key that is not wanted.
func NothingBelow(name string, got, want map[string]uint64) error {
	var wrong []string
	for key, w := range want {
		if got[key] < w {
			wrong = append(wrong, fmt.Sprintf("%q is %d, want at least %d", key, got[key], w))
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			wrong = append(wrong, fmt.Sprintf("%q is there, want no such key", key))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s differs in %d keys: %s", name, len(wrong), slices.Min(wrong))
}
