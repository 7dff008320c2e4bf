package window_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millrace-io/millrace/streams/window"
)

func starts(c window.Calc, ts int64) []int64 {
	var all []int64
	for start := c.First(ts); ; start += c.Advance {
		all = append(all, start)
		if start == c.Last(ts) {
			return all
		}
	}
}

func TestFirst(t *testing.T) {
	for _, test := range []struct {
		name          string
		size, advance int64
		ts            int64
		want          []int64
	}{
		{"tumbling, first", 10, 10, 0, []int64{0}},
		{"tumbling, last of a window", 10, 10, 9, []int64{0}},
		{"tumbling, first of the next", 10, 10, 10, []int64{10}},
		{"hopping", 10, 5, 12, []int64{5, 10}},
		{"hopping, before the first full overlap", 10, 5, 3, []int64{0}},
		{"advance that does not divide size", 5, 3, 7, []int64{3, 6}},
		{"advance that does not divide size, three windows", 7, 3, 6, []int64{0, 3, 6}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := window.Calc{Size: test.size, Advance: test.advance}
			if got := starts(c, test.ts); !slices.Equal(got, test.want) {
				t.Fatalf("windows of %d: got %v, want %v", test.ts, got, test.want)
			}
		})
	}
}

// TestFirstAgainstNaiveTwin compares with the definition: all multiples of advance whose window contains ts.
func TestFirstAgainstNaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, 60).Draw(t, "size")
		advance := rapid.Int64Range(1, size).Draw(t, "advance")
		ts := rapid.Int64Range(0, 500).Draw(t, "ts")
		var want []int64
		for start := int64(0); start <= ts; start += advance {
			if ts < start+size {
				want = append(want, start)
			}
		}
		if got := starts(window.Calc{Size: size, Advance: advance}, ts); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestOpenIsStrictOnTheEnd(t *testing.T) {
	c := window.Calc{Size: 10, Advance: 10, Grace: 5}
	if !c.Open(0, 14) {
		t.Error("window [0,10) with grace 5 must be open at stream time 14")
	}
	if c.Open(0, 15) {
		t.Error("window [0,10) with grace 5 must be closed at stream time 15")
	}
}

func TestHostileTimestampEnds(t *testing.T) {
	if got := len(starts(window.Calc{Size: 10, Advance: 3}, math.MaxInt64)); got < 3 || got > 4 {
		t.Fatalf("the greatest timestamp falls into %d windows, want 3 or 4", got)
	}
}

func TestEndSaturates(t *testing.T) {
	if got := window.End(math.MaxInt64-3, 10); got != math.MaxInt64 {
		t.Errorf("End = %d, want the greatest int64", got)
	}
}

func TestValidate(t *testing.T) {
	if err := window.Hopping(time.Minute, 10*time.Second).Grace(0).Validate(); err != nil {
		t.Errorf("a valid definition: %v", err)
	}
	for want, def := range map[string]window.Def{
		"size":         window.Tumbling(0).Grace(0),
		"advance":      window.Hopping(time.Second, 2*time.Second).Grace(0),
		"grace":        window.Tumbling(time.Second).Grace(-time.Second),
		"milliseconds": window.Tumbling(time.Second + time.Microsecond).Grace(0),
	} {
		err := def.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want an error that names %q", def, err, want)
		}
	}
	if err := (window.Def{}).Validate(); err == nil {
		t.Error("the zero definition must be invalid")
	}
}

func TestKeyString(t *testing.T) {
	if got, want := (window.Key[string]{Key: "k", Start: 10, End: 20}).String(), "[k@10/20]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
