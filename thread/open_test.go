package thread

import (
	"errors"
	"testing"
	"time"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/memstore"
)

func stateAt(t *testing.T, next int64, at time.Time) *statestore.State {
	t.Helper()
	specs := []statestore.Spec{{Name: "counts", Logged: true}}
	state, err := statestore.OpenState(memstore.New(), specs, statestore.StateOptions{Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	if next > 0 {
		if err := state.Commit([]statestore.Offset{{Store: "counts", Next: next}}); err != nil {
			t.Fatal(err)
		}
	}
	return state
}

// Local state is continued where the changelog continues it, and given up only where it does not.
func TestWhereRestoringBegins(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		local      int64 // 0: none
		age        time.Duration
		begin, end int64
		from       int64
		rebuild    bool
	}{
		"no local state":                          {begin: 5, end: 9, from: 5},
		"a delta is missing":                      {local: 7, begin: 5, end: 9, from: 7},
		"up to date":                              {local: 9, begin: 5, end: 9, from: 9},
		"up to date since long":                   {local: 9, age: 48 * time.Hour, begin: 5, end: 9, from: 9},
		"the beginning was deleted":               {local: 4, begin: 5, end: 9, rebuild: true},
		"records were lost on the brokers":        {local: 10, begin: 5, end: 9, rebuild: true},
		"deletions may be gone from the log":      {local: 7, age: 25 * time.Hour, begin: 5, end: 9, rebuild: true},
		"a delta is missing since less than that": {local: 7, age: 23 * time.Hour, begin: 5, end: 9, from: 7},
	} {
		t.Run(name, func(t *testing.T) {
			state := stateAt(t, c.local, now.Add(-c.age))
			log := changelog{task: taskid.ID{Subtopology: "words"}, store: "counts", topic: "app-counts-changelog", from: c.begin, end: c.end}
			err := log.continueFrom(state, now)
			why, obsolete := rebuildable(err)
			if obsolete != c.rebuild {
				t.Fatalf("rebuild %v (%s), want %v", obsolete, why, c.rebuild)
			}
			if err == nil && log.from != c.from {
				t.Errorf("restoring begins at %d, want %d", log.from, c.from)
			}
		})
	}
}

// Whose state may be thrown away, and whose not.
func TestWhatMayBeRebuilt(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&statestore.IdentityError{What: statestore.ChangelogMismatch}, true},
		{&statestore.IdentityError{What: statestore.ApplicationMismatch}, false},
		{&statestore.IdentityError{What: statestore.ClusterMismatch}, false},
		{&statestore.StoreError{Corrupt: true}, true},
		{&statestore.StoreError{Err: errors.New("disk full"), Stalled: true}, false},
		{errors.New("broker away"), false},
		{nil, false},
	} {
		if _, got := rebuildable(c.err); got != c.want {
			t.Errorf("rebuildable(%v) = %v", c.err, got)
		}
	}
}
