// Package serdetest checks that a serde keeps the promises of [serde.Serde]. Use it for serdes of your own.
package serdetest

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/millrace-io/millrace/streams/serde"
)

// RoundTrip checks for every value that encoding appends (what the buffer held stays), that decoding gives the value
// back, that it does not depend on bytes that follow, and, unless aliases is set, that the result survives the reuse of
// its source.
func RoundTrip[T any](t *testing.T, s serde.Serde[T], aliases bool, values ...T) {
	t.Helper()
	prefix := []byte("prefix")
	for _, v := range values {
		buf, err := s.Append(bytes.Clone(prefix), v)
		if err != nil {
			t.Errorf("Append(%v): %v", v, err)
			continue
		}
		if !bytes.HasPrefix(buf, prefix) {
			t.Errorf("Append(%v) changed what the buffer held: %q", v, buf)
			continue
		}
		src := buf[len(prefix):]
		got, err := s.Decode(src)
		if err != nil {
			t.Errorf("Decode(%x): %v", src, err)
			continue
		}
		if !aliases {
			clear(buf)
		}
		if !reflect.DeepEqual(got, v) {
			t.Errorf("round trip of %#v gave %#v", v, got)
		}
	}
}

// Rejects checks that each source is refused with an error instead of a panic or a value.
func Rejects[T any](t *testing.T, s serde.Serde[T], sources ...[]byte) {
	t.Helper()
	for _, src := range sources {
		if v, err := s.Decode(src); err == nil {
			t.Errorf("Decode(%x) = %#v, want an error", src, v)
		}
	}
}
