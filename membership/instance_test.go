package membership

import (
	"errors"
	"strings"
	"testing"
)

func TestInstanceID(t *testing.T) {
	id, err := InstanceID("wc-0", 2)
	if err != nil || id != "wc-0-StreamThread-2-consumer" {
		t.Errorf("got %q, %v", id, err)
	}
	suffix := len(ConsumerClientID("", 1))
	if _, err := InstanceID(strings.Repeat("a", MaxNameLength-suffix), 1); err != nil {
		t.Errorf("the longest client id is refused: %v", err)
	}
	for client, want := range map[string]string{
		"":       "no name before the suffix",
		"wc/0":   `'/' at byte 2`,
		"zähler": `'ä' at byte 1`,
		"wc 0":   `' ' at byte 2`,
		"a\xff":  "at byte 1",
		strings.Repeat("a", MaxNameLength-suffix+1): "is 250 characters long",
	} {
		id, err := InstanceID(client, 1)
		e, ok := errors.AsType[*NameError](err)
		if !ok || id != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v; want a *NameError with %q", client, id, err, want)
			continue
		}
		if e.ClientID != client || e.InstanceID != ConsumerClientID(client, 1) {
			t.Errorf("%q: the error names %q and %q", client, e.ClientID, e.InstanceID)
		}
	}
}

func TestIncarnationOf(t *testing.T) {
	const uuid = "7d9f0c1e-1b1b-4b55-9d6a-0a6f7c1c2a11"
	for _, c := range []struct {
		memberID, instanceID string
		want                 bool
	}{
		{"a-" + uuid, "a", true},
		{"a-b-" + uuid, "a", false}, // another instance id that begins like ours
		{"a-b-" + uuid, "a-b", true},
		{"b-" + uuid, "a", false},
		{"a", "a", false},
		{"-" + uuid, "", false},
	} {
		if got := incarnationOf(c.memberID, c.instanceID); got != c.want {
			t.Errorf("incarnationOf(%q, %q) = %v", c.memberID, c.instanceID, got)
		}
	}
}

func TestThreadOf(t *testing.T) {
	for id, want := range map[string]int{
		"wc-1-StreamThread-1-consumer": 1, "wc-1-StreamThread-12-consumer": 12, "wc-1-StreamThread-0-consumer": 0,
		"wc-1-StreamThread--3-consumer": 0, "wc-1-StreamThread-03-consumer": 0, "wc-1-StreamThread-3": 0, "wc-11-StreamThread-3-consumer": 0,
		"wc-StreamThread-3-consumer": 0, "wc-1-StreamThread-+3-consumer": 0, "": 0, "wc-1": 0,
	} {
		if n, ok := ThreadOf("wc-1", id); ok != (want > 0) || ok && n != want {
			t.Errorf("ThreadOf(%q) = %d, %t, want %d", id, n, ok, want)
		}
	}
}
