package serde_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/serde/serdetest"
	"github.com/millrace-io/millrace/streams/window"
)

type order struct {
	Customer string
	Cents    int64
}

func TestRoundTrips(t *testing.T) {
	serdetest.RoundTrip(t, serde.Bytes, true, []byte{}, []byte("a"), []byte{0, 0xff})
	serdetest.RoundTrip(t, serde.String, false, "", "a", "grüße", "\xff\xfe invalid UTF-8")
	serdetest.RoundTrip(t, serde.Int32, false, 0, 1, -1, math.MaxInt32, math.MinInt32)
	serdetest.RoundTrip(t, serde.Int64, false, 0, 1, -1, math.MaxInt64, math.MinInt64)
	serdetest.RoundTrip(t, serde.Float64, false, 0, -1.5, math.MaxFloat64, math.Inf(-1))
	serdetest.RoundTrip(t, serde.Bool, false, true, false)
	serdetest.RoundTrip(t, serde.JSON[order](), false, order{}, order{Customer: "c", Cents: 3})
	serdetest.RoundTrip(t, serde.Nullable(serde.String), false, new("a"), new(""))
	serdetest.RoundTrip(t, serde.Windowed(serde.String, 10*time.Millisecond), false,
		window.Key[string]{Key: "k", Start: 0, End: 10}, window.Key[string]{Key: "", Start: 20, End: 30})
}

func TestRejects(t *testing.T) {
	serdetest.Rejects(t, serde.Int32, nil, []byte{1, 2, 3}, make([]byte, 5))
	serdetest.Rejects(t, serde.Int64, nil, []byte{1, 2, 3}, make([]byte, 9))
	serdetest.Rejects(t, serde.Float64, nil, make([]byte, 7))
	serdetest.Rejects(t, serde.Bool, nil, []byte{2}, []byte{0, 0})
	serdetest.Rejects(t, serde.JSON[order](), nil, []byte("{"), []byte("{} {}"), []byte(`{"Cents":"x"}`))
	serdetest.Rejects(t, serde.Nullable(serde.Int64), []byte{1})
	serdetest.Rejects(t, serde.Windowed(serde.Int32, time.Second), []byte{1, 2, 3}, make([]byte, 11),
		[]byte{0, 0, 0, 1, 0xff, 0, 0, 0, 0, 0, 0, 0})
}

// The layouts are Kafka's: a Java consumer reads them with its own deserialisers.
func TestLayouts(t *testing.T) {
	for _, test := range []struct {
		name string
		got  func() ([]byte, error)
		want []byte
	}{
		{"int32", func() ([]byte, error) { return serde.Int32.Append(nil, -2) }, []byte{0xff, 0xff, 0xff, 0xfe}},
		{"int64", func() ([]byte, error) { return serde.Int64.Append(nil, 258) }, []byte{0, 0, 0, 0, 0, 0, 1, 2}},
		{"float64", func() ([]byte, error) { return serde.Float64.Append(nil, 1) }, []byte{0x3f, 0xf0, 0, 0, 0, 0, 0, 0}},
		{"bool", func() ([]byte, error) { return serde.Bool.Append(nil, true) }, []byte{1}},
		{"windowed", func() ([]byte, error) {
			return serde.Windowed(serde.String, time.Second).Append(nil, window.Key[string]{Key: "ab", Start: 1000})
		}, []byte{'a', 'b', 0, 0, 0, 0, 0, 0, 0x03, 0xe8}},
	} {
		got, err := test.got()
		if err != nil || !bytes.Equal(got, test.want) {
			t.Errorf("%s: got %x, %v, want %x", test.name, got, err, test.want)
		}
	}
}

func TestBytesDecodeCutsTheCapacity(t *testing.T) {
	batch := []byte("keyvalue")
	key, err := serde.Bytes.Decode(batch[:3])
	if err != nil {
		t.Fatal(err)
	}
	_ = append(key, "XXXXX"...)
	if string(batch) != "keyvalue" {
		t.Fatalf("appending to a decoded value wrote into the batch: %q", batch)
	}
}

func TestWindowedKeysArePartitionedByTheInnerKey(t *testing.T) {
	s := serde.Windowed(serde.String, time.Second)
	key, err := s.Append(nil, window.Key[string]{Key: "abc", Start: 7000})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.(serde.Partitioned).PartitionKey(key); got != 3 {
		t.Fatalf("PartitionKey = %d, want the 3 bytes of the inner key", got)
	}
}

func TestDefault(t *testing.T) {
	if s, ok := serde.Default[string](); !ok || s != serde.String {
		t.Errorf("Default[string] = %v, %v", s, ok)
	}
	if _, ok := serde.Default[*int64](); !ok {
		t.Error("Default[*int64] is missing")
	}
	if s, ok := serde.Default[order](); ok {
		t.Errorf("Default[order] = %v, want none", s)
	}
}

func FuzzDecodeNeverPanics(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte(`{"Customer":"x"}`))
	f.Add(make([]byte, 12))
	windowed := serde.Windowed(serde.Int32, time.Second)
	f.Fuzz(func(t *testing.T, src []byte) {
		if v, err := serde.Int64.Decode(src); err == nil {
			if again, err := serde.Int64.Append(nil, v); err != nil || !bytes.Equal(again, src) {
				t.Errorf("int64: %x decoded to %d, which encodes to %x, %v", src, v, again, err)
			}
		}
		if v, err := windowed.Decode(src); err == nil {
			if again, err := windowed.Append(nil, v); err != nil || !bytes.Equal(again, src) {
				t.Errorf("windowed: %x decoded to %v, which encodes to %x, %v", src, v, again, err)
			}
		}
		if v, err := serde.String.Decode(src); err != nil || v != string(src) {
			t.Errorf("string: %x decoded to %q, %v", src, v, err)
		}
		if v, err := serde.JSON[order]().Decode(src); err == nil {
			serdetest.RoundTrip(t, serde.JSON[order](), false, v)
		}
	})
}
