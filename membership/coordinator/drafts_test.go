package coordinator

import (
	"strings"
	"testing"
	"time"
)

// cmdSettings replaces a group's settings.
func (w *world) cmdSettings(a *args) error {
	ev := Configure{
		Group: a.text("group", "g"),
		Settings: Settings{
			RegistrationTimeout: a.duration("registration", 0),
			ExpansionTimeout:    a.duration("expansion", 0),
			Expected:            a.list("expected"),
			RefuseUnexpected:    a.bool("refuse-unexpected"),
			TargetSize:          int(a.number("target", 0)),
			SpareSession:        a.duration("spare-session", 0),
		},
		RemoveNow: a.bool("remove-now"),
		Dismissed: a.list("dismissed"),
	}
	if err := ev.Settings.Validate(); err != nil {
		return err
	}
	w.step(ev)
	return nil
}

// cmdForce forces a rebalance; its outcome is printed by whatever command brings it about.
func (w *world) cmdForce(a *args) error {
	w.last++
	w.forced[w.last] = a.text("as", "force")
	id := w.last
	w.step(ForceRebalance{ID: id, Group: a.text("group", "g"), Deadline: a.duration("deadline", 0)})
	if name, waits := w.forced[id]; waits {
		w.printf("%s under way", name)
	}
	return nil
}

func (w *world) forcedRebalance(f *Forced) {
	name := w.forced[f.ID]
	delete(w.forced, f.ID)
	if f.Err != nil {
		w.printf("%s: %s: %s", name, errorText(f.Err.Code), f.Reason)
		return
	}
	w.printf("%s: generation %d to %d removed=(%s) kept=(%s)", name, f.Before, f.After, strings.Join(f.Removed, ","), strings.Join(f.Kept, ","))
}

func TestSettingsOutOfBoundsAreNamed(t *testing.T) {
	for want, s := range map[string]Settings{
		"registration timeout is -1s":           {RegistrationTimeout: -time.Second},
		"expansion timeout is -1ns":             {ExpansionTimeout: -1},
		"target size is -1":                     {TargetSize: -1},
		"spare session is -1ns":                 {SpareSession: -1},
		"spare session needs a target size":     {SpareSession: time.Second},
		"needs expected instance ids":           {RefuseUnexpected: true},
		`"a/b" is expected, which is not an in`: {Expected: []string{"a/b"}},
		`"a" is expected twice`:                 {Expected: []string{"a", "b", "a"}},
	} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", s, err, want)
		}
	}
	ok := Settings{RegistrationTimeout: time.Minute, ExpansionTimeout: time.Minute, Expected: []string{"a"}, RefuseUnexpected: true, TargetSize: 1, SpareSession: time.Second}
	if err := ok.Validate(); err != nil {
		t.Error(err)
	}
}
