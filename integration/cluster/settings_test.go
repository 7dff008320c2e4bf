package cluster

import (
	"slices"
	"testing"

	"github.com/millrace-io/millrace/membership/coordinator"
)

// Who was taken off the list of expected instance ids is still to leave together with the others when the cluster has been
// started again, whatever it died of.
func TestDismissedAreTheSameAfterARestart(t *testing.T) {
	d, err := openDataDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.lock.Close()
	s, err := readSettings(d)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(ids ...string) {
		t.Helper()
		if err := s.store("g", coordinator.Settings{Expected: ids}); err != nil {
			t.Fatal(err)
		}
	}
	told := func() (ev coordinator.Configure) {
		t.Helper()
		if s, err = readSettings(d); err != nil { // as the next start does
			t.Fatal(err)
		}
		s.tell(func(e coordinator.Event) { ev = e.(coordinator.Configure) })
		return ev
	}
	expect("a", "b", "c", "d")
	expect("a", "b", "c")
	expect("a", "b")
	if ev := told(); !slices.Equal(ev.Settings.Expected, []string{"a", "b"}) || !slices.Equal(ev.Dismissed, []string{"c", "d"}) {
		t.Errorf("after a restart the coordinator is told %+v", ev)
	}
	expect("a", "d")
	if ev := told(); !slices.Equal(ev.Dismissed, []string{"b", "c"}) {
		t.Errorf("d is expected again, and the coordinator is told %+v", ev)
	}
	expect()
	if ev := told(); len(ev.Dismissed) != 0 {
		t.Errorf("nobody in particular is expected, and the coordinator is told %+v", ev)
	}
}
