// Package serde turns Go values into the bytes of Kafka record keys and values, and back.
//
// A [Serde] appends to a buffer that its caller owns, so encoding allocates nothing; decoding allocates what the value
// itself needs. The layouts of the built-in serdes are those of Kafka's own serialisers (numbers big-endian, strings as
// they are), so topics can be shared with Java applications.
//
// # Null
//
// A serde never meets null. Kafka's null key and null value (a tombstone) are flags of a record, kept outside of the
// bytes: the runtime neither decodes a null payload nor encodes a null value. What user functions see of a null
// depends on the Go type:
//
//   - A type with a nil of its own that means "nothing" is nullable: pointers, interfaces and []byte. User functions get
//     nil, and nil returned by one becomes a null in Kafka. [Nullable] lifts any serde to its pointer type.
//   - Any other type is not nullable. Functions of values are then never called with a null value: the operator passes
//     the tombstone through or drops and counts it, as its documentation says. A missing key shows as the zero value
//     and stays missing when the record is written again.
//
// # Concurrency
//
// A serde is shared by all tasks of an application, so it must be safe for concurrent use; the ones here have no state.
//
// This package is a promise to users.
package serde

import "fmt"

// Serde encodes and decodes one type.
type Serde[T any] interface {
	// Append appends the bytes of v to dst and returns the extended buffer. Neither dst nor the result is retained.
	Append(dst []byte, v T) ([]byte, error)
	// Decode returns the value in src. The result must not retain src unless the serde says that it aliases it: src
	// belongs to a buffer that is reused. Bytes that are no value of T are an error, never a panic.
	Decode(src []byte) (T, error)
}

// Default returns the serde for the built-in types that have one: []byte, string, bool, int32, int64, float64, and
// pointers to those (nullable). ok is false for every other type.
func Default[T any]() (s Serde[T], ok bool) {
	for _, candidate := range []any{
		String, Bytes, Int64, Int32, Float64, Bool,
		Nullable(String), Nullable(Int64), Nullable(Int32), Nullable(Float64), Nullable(Bool),
	} {
		if s, ok := candidate.(Serde[T]); ok {
			return s, true
		}
	}
	return nil, false
}

// sizeError says that a fixed-size value has the wrong length.
func sizeError(what string, want, got int) error {
	return fmt.Errorf("decode %s: want %d bytes, got %d", what, want, got)
}
