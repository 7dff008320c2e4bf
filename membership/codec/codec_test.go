package codec

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace-io/millrace/internal/taskid"
)

var sample = Subscription{
	Version:       Version,
	ProcessID:     "2f6f9f62-6f0e-4a6e-9d0c-6f3f8a4d9a11",
	ClientID:      "wc-0",
	Endpoint:      "10.0.0.7:8080",
	TopologyHash:  0xfeedfacecafebeef,
	Tags:          map[string]string{"zone": "b", "rack": "17"},
	Subtopologies: []string{"counts", "split"},
	Generation:    4,
	Owned:         []taskid.ID{{Subtopology: "counts", Partition: 0}, {Subtopology: "counts", Partition: 2}, {Subtopology: "split", Partition: 1}},
	Standby:       []taskid.ID{{Subtopology: "counts", Partition: 1}},
	Offsets:       []TaskOffset{{Task: taskid.ID{Subtopology: "counts", Partition: 0}, Sum: 123456789}, {Task: taskid.ID{Subtopology: "split", Partition: 1}, Sum: -2}},
}

var sampleAssignment = Assignment{
	Version:    Version,
	Generation: 5,
	Active:     []taskid.ID{{Subtopology: "counts", Partition: 0}},
	Standby:    []taskid.ID{{Subtopology: "counts", Partition: 1}},
	Release:    []taskid.ID{{Subtopology: "counts", Partition: 2}},
	KnownHash:  sample.KnownHash(),
	InputsHash: 77,
	Settling:   true,
}

func TestSubscriptionRoundTrip(t *testing.T) {
	for name, s := range map[string]Subscription{
		"full":  sample,
		"empty": {Version: Version, Generation: NoGeneration},
		"zero":  {Version: Version},
	} {
		got, err := DecodeSubscription(s.Encode())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(s, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

func TestAssignmentRoundTrip(t *testing.T) {
	for name, a := range map[string]Assignment{
		"full": sampleAssignment,
		"zero": {Version: Version},
	} {
		got, err := DecodeAssignment(a.Encode())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(a, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	empty, err := DecodeAssignment(nil)
	if err != nil || empty.Generation != NoGeneration || len(empty.Active) > 0 {
		t.Errorf("no bytes: got %+v, %v; want an empty assignment", empty, err)
	}
}

// The coordinator compares bytes to tell whether a member has changed, so equal values must give equal bytes.
func TestEncodingIsDeterministic(t *testing.T) {
	want := sample.Encode()
	for range 20 {
		if got := sample.Encode(); !cmp.Equal(want, got) {
			t.Fatalf("two encodings differ:\n%x\n%x", want, got)
		}
	}
}

// A newer writer may add fields that we skip; it locks us out only by the minimum version.
func TestNewerWriter(t *testing.T) {
	b := sample.Encode()
	binary.BigEndian.PutUint16(b[3:], Version+1)
	b = appendField(b, 200, []byte("a field of tomorrow"))
	got, err := DecodeSubscription(b)
	if err != nil {
		t.Fatal(err)
	}
	want := sample
	want.Version = Version + 1
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	binary.BigEndian.PutUint16(b[5:], Version+1) // the version is Version+1 already
	_, err = DecodeSubscription(b)
	if e, ok := errors.AsType[*VersionError](err); !ok || e.MinVersion != Version+1 {
		t.Errorf("minimum version %d: got %v, want a *VersionError", Version+1, err)
	}
}

func TestForeignAndDamagedBytes(t *testing.T) {
	good := sample.Encode()
	for name, b := range map[string][]byte{
		"empty":               nil,
		"foreign":             []byte("\x00\x00\x00\x01something else"),
		"an assignment":       sampleAssignment.Encode(),
		"cut in a field":      good[:len(good)-1],
		"tags out of order":   appendField(appendField(good[:headerLen:headerLen], 3, []byte("x")), 1, []byte("y")),
		"lying length":        append(good[:headerLen:headerLen], 1, 200, 'x'),
		"lying count":         appendField(good[:headerLen:headerLen], subOwned, []byte{1, 's', 0xff, 0xff, 0xff, 0x7f}),
		"partition too large": appendField(good[:headerLen:headerLen], subOwned, binary.AppendVarint([]byte{1, 's', 1}, 1<<40)),
	} {
		if s, err := DecodeSubscription(b); err == nil {
			t.Errorf("%s: decoded to %+v, want an error", name, s)
		}
	}
}

func TestKnownHash(t *testing.T) {
	base := sample.KnownHash()
	same := sample
	same.Offsets, same.Owned, same.Standby, same.Generation, same.ClientID = nil, nil, nil, 9, "other"
	if same.KnownHash() != base {
		t.Error("the hash depends on offsets, owned tasks or generation: every restart would rebalance")
	}
	for name, change := range map[string]func(*Subscription){
		"endpoint": func(s *Subscription) { s.Endpoint = "10.0.0.8:8080" },
		"topology": func(s *Subscription) { s.TopologyHash++ },
		"tags":     func(s *Subscription) { s.Tags = map[string]string{"zone": "c"} },
	} {
		s := sample
		change(&s)
		if s.KnownHash() == base {
			t.Errorf("a change of %s does not change the hash", name)
		}
	}
}

func TestEnvelope(t *testing.T) {
	owned := []TopicPartition{{"words", 2}, {"lines", 1}, {"lines", 0}, {"lines", 1}}
	topics, got, err := DecodeMember(EncodeMember([]string{"words", "lines"}, owned, &sample))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"lines", "words"}, topics); diff != "" {
		t.Errorf("topics: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(sample, got); diff != "" {
		t.Errorf("subscription: -want +got\n%s", diff)
	}

	sources, a, err := DecodeGrant(EncodeGrant(owned, &sampleAssignment))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]TopicPartition{{"lines", 0}, {"lines", 1}, {"words", 2}}, sources); diff != "" {
		t.Errorf("sources: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(sampleAssignment, a); diff != "" {
		t.Errorf("assignment: -want +got\n%s", diff)
	}
	if _, a, err := DecodeGrant(nil); err != nil || a.Generation != NoGeneration {
		t.Errorf("no bytes: got %+v, %v", a, err)
	}
	if _, _, err := DecodeMember([]byte{1}); err == nil {
		t.Error("one byte decoded as a member")
	}
}

func FuzzSubscription(f *testing.F) {
	f.Add(sample.Encode())
	f.Add([]byte{})
	f.Add([]byte("mrs\x00\x01\x00\x01\x07\x03\x01s\x05"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeSubscription(b)
		if err != nil {
			return
		}
		s.Version = Version
		again, err := DecodeSubscription(s.Encode())
		if err != nil {
			t.Fatalf("%+v does not decode again: %v", s, err)
		}
		if diff := cmp.Diff(s, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func FuzzAssignment(f *testing.F) {
	f.Add(sampleAssignment.Encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := DecodeAssignment(b)
		if err != nil {
			return
		}
		a.Version = Version
		again, err := DecodeAssignment(a.Encode())
		if err != nil {
			t.Fatalf("%+v does not decode again: %v", a, err)
		}
		if diff := cmp.Diff(a, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// FuzzEnvelope feeds both envelope readers: they meet whatever another application left in the group.
func FuzzEnvelope(f *testing.F) {
	f.Add(EncodeMember([]string{"lines"}, nil, &sample))
	f.Add(EncodeGrant([]TopicPartition{{"lines", 1}}, &sampleAssignment))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, s, err := DecodeMember(b); err == nil && s.Version == 0 && s.ProcessID != "" {
			t.Errorf("decoded without a version: %+v", s)
		}
		if _, a, err := DecodeGrant(b); err == nil && a.Version == 0 && len(a.Active) > 0 {
			t.Errorf("decoded without a version: %+v", a)
		}
	})
}
