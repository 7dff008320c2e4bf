package streamstest_test

import (
	"encoding/json"
	"fmt"

	"github.com/millrace-io/millrace/streams/serde"
)

// kind is the type of a vector's keys or values. All run through the DSL as the Go type any, whose nil is a null.
type kind string

const (
	kindString kind = "string"
	kindInt64  kind = "int64"
)

// serde returns the serde of the kind.
func (k kind) serde() serde.Serde[any] {
	switch k {
	case kindString:
		return boxed[string]{serde.String}
	case kindInt64:
		return boxed[int64]{serde.Int64}
	default:
		panic(notCovered("type " + string(k)))
	}
}

// boxed is a serde whose values travel as any.
type boxed[T any] struct{ inner serde.Serde[T] }

func (s boxed[T]) Append(dst []byte, v any) ([]byte, error) {
	typed, ok := v.(T)
	if !ok {
		return nil, fmt.Errorf("the value is %T, the topology declares %T", v, typed)
	}
	return s.inner.Append(dst, typed)
}

func (s boxed[T]) Decode(src []byte) (any, error) { return s.inner.Decode(src) }

// plain turns JSON's form of a key or value into Go's.
func plain(v any) any {
	number, ok := v.(json.Number)
	if !ok {
		return v
	}
	n, err := number.Int64()
	if err != nil {
		panic(fmt.Sprintf("%v is not an integer", number))
	}
	return n
}
