package statestore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/memstore"
)

func TestIdentityIsCheckedAndRecorded(t *testing.T) {
	mine := statestore.Identity{ApplicationID: "app", ClusterID: "c1", Changelogs: map[string]string{"counts": "t1"}}
	counts := []statestore.Spec{{Name: "counts", Logged: true}}
	cases := []struct {
		name  string
		id    statestore.Identity
		specs []statestore.Spec
		want  statestore.IdentityKind // "" for none
	}{
		{"the same", mine, counts, ""},
		{"nothing known", statestore.Identity{}, counts, ""},
		{"another application", statestore.Identity{ApplicationID: "other"}, counts, statestore.ApplicationMismatch},
		{"another cluster", statestore.Identity{ApplicationID: "app", ClusterID: "c2"}, counts, statestore.ClusterMismatch},
		{"a topic made again", statestore.Identity{Changelogs: map[string]string{"counts": "t2"}}, counts, statestore.ChangelogMismatch},
		{"a topic of another store", statestore.Identity{Changelogs: map[string]string{"new": "t2"}}, counts, ""},
		{"another kind", mine, []statestore.Spec{{Name: "counts", Kind: statestore.Window, WindowSize: 1, Retention: 1}}, statestore.KindMismatch},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := memstore.New()
			_, err := statestore.OpenState(e, counts, statestore.StateOptions{Identity: mine})
			must(t, err)
			_, err = statestore.OpenState(e, c.specs, statestore.StateOptions{Identity: c.id, Dir: "/state/app/counts_0"})
			var mismatch *statestore.IdentityError
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want == "":
				return
			case !errors.As(err, &mismatch) || mismatch.What != c.want:
				t.Fatalf("got %v, want a mismatch of the %s", err, c.want)
			}
			if !strings.Contains(err.Error(), "/state/app/counts_0") {
				t.Errorf("%q does not say where", err)
			}
			theirs := c.want == statestore.ApplicationMismatch || c.want == statestore.ClusterMismatch
			if mismatch.Rebuildable() == theirs {
				t.Errorf("rebuildable is %v for the %s", mismatch.Rebuildable(), c.want)
			}
		})
	}
}

func TestIdentityThatBecomesKnownIsRecordedLater(t *testing.T) {
	e := memstore.New()
	open := func(id statestore.Identity) error {
		_, err := statestore.OpenState(e, []statestore.Spec{{Name: "counts"}}, statestore.StateOptions{Identity: id})
		return err
	}
	must(t, open(statestore.Identity{}))
	must(t, open(statestore.Identity{ApplicationID: "app", ClusterID: "c", Changelogs: map[string]string{"counts": "t"}}))
	if err := open(statestore.Identity{ApplicationID: "other"}); err == nil {
		t.Error("another application: no error")
	}
	if err := open(statestore.Identity{Changelogs: map[string]string{"counts": "u"}}); err == nil {
		t.Error("another topic: no error")
	}
}

func TestUnknownFormatIsRefused(t *testing.T) {
	e := memstore.New()
	var b statestore.Batch
	b.Set([]byte{0, 0, 'f'}, []byte{0, 0, 0, 99})
	must(t, e.Apply(&b))
	_, err := statestore.OpenState(e, nil, statestore.StateOptions{})
	var mismatch *statestore.IdentityError
	if !errors.As(err, &mismatch) || mismatch.What != statestore.FormatMismatch || mismatch.Have != "99" {
		t.Errorf("got %v, want a mismatch of the format", err)
	}
}

func TestDamagedMetaRowIsCorrupt(t *testing.T) {
	for _, letter := range "fqsot" {
		e := memstore.New()
		var b statestore.Batch
		b.Set(append([]byte{0, 0, byte(letter)}, 0, 1), []byte{1})
		must(t, e.Apply(&b))
		_, err := statestore.OpenState(e, nil, statestore.StateOptions{})
		var damaged *statestore.StoreError
		if !errors.As(err, &damaged) || !damaged.Corrupt {
			t.Errorf("row %c: got %v, want a corrupt StoreError", letter, err)
		}
	}
}

func TestStoresKeepTheirRowsWhateverTheOrderOfSpecs(t *testing.T) {
	disk := new(memstore.Disk)
	open := func(specs ...statestore.Spec) *statestore.State {
		e, err := disk.Open()
		must(t, err)
		return openState(t, e, specs...)
	}
	a, b, c := statestore.Spec{Name: "a"}, statestore.Spec{Name: "b"}, statestore.Spec{Name: "c"}
	s := open(a, b)
	for _, name := range []string{"a", "b"} {
		kv, err := s.KeyValue(name)
		must(t, err)
		must(t, kv.Put([]byte("k"), []byte(name), 1))
	}
	must(t, s.Commit([]statestore.Offset{{Store: "b", Next: 5}}))
	must(t, s.Close(t.Context()))

	must(t, open(c).Close(t.Context())) // a topology without a and b, then back
	s = open(c, b, a)
	for _, name := range []string{"a", "b"} {
		kv, err := s.KeyValue(name)
		must(t, err)
		if value, _, _, err := kv.Get([]byte("k")); err != nil || string(value) != name {
			t.Errorf("store %s has %q, %v", name, value, err)
		}
	}
	if next, ok := s.Offset("b"); !ok || next != 5 {
		t.Errorf("offset of b is %d, %v, want 5", next, ok)
	}
}

func TestLastAppliedIsTheTimeOfTheBatch(t *testing.T) {
	now := time.UnixMilli(1_000)
	e := memstore.New()
	opts := statestore.StateOptions{Now: func() time.Time { return now }}
	specs := []statestore.Spec{{Name: "a", Logged: true}, {Name: "b", Logged: true}}
	s, err := statestore.OpenState(e, specs, opts)
	must(t, err)
	must(t, s.Commit([]statestore.Offset{{Store: "a", Next: 1}}))
	now = time.UnixMilli(2_000)
	must(t, s.Restore("b", nil, 3))
	for range 2 {
		for name, want := range map[string]int64{"a": 1_000, "b": 2_000} {
			if at, ok := s.LastApplied(name); !ok || at.UnixMilli() != want {
				t.Errorf("store %s: last applied at %v, %v, want %d ms", name, at, ok, want)
			}
		}
		s, err = statestore.OpenState(e, specs, opts)
		must(t, err)
	}
}
