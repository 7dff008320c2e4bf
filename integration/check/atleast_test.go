package check

import (
	"maps"
	"testing"
)

func TestNothingMissingReportsLossesOnly(t *testing.T) {
	want := words(60)
	for _, f := range plants {
		got := clone(want)
		got[1] = f.plant(got[1])
		err := NothingMissing("repartition", got, want)
		if allowed := f.kind == "swapped" || f.kind == "duplicate" || f.kind == "extra"; allowed != (err == nil) {
			t.Errorf("%s: reported as %v", f.name, err)
		}
	}
	if NothingMissing("repartition", want[:1], want) == nil {
		t.Error("a missing partition was not noticed")
	}
}

func TestNothingBelowReportsMissingCounts(t *testing.T) {
	want := map[string]uint64{"a": 3, "b": 1}
	got := maps.Clone(want)
	if err := NothingBelow("state", got, want); err != nil {
		t.Error(err)
	}
	got["a"]++
	if err := NothingBelow("state", got, want); err != nil {
		t.Error(err)
	}
	for key, n := range map[string]uint64{"a": 2, "b": 0, "stranger": 1} {
		got := maps.Clone(want)
		got[key] = n
		if NothingBelow("state", got, want) == nil {
			t.Errorf("%s = %d was not noticed", key, n)
		}
	}
}
