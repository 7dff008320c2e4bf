package serde

import (
	"encoding/json"
	"fmt"
)

// JSON returns the serde that encodes T with encoding/json. Decode rejects trailing data. For T = *S, a nil pointer is a
// null in Kafka, not the JSON literal null.
func JSON[T any]() Serde[T] { return jsonSerde[T]{} }

type jsonSerde[T any] struct{}

func (jsonSerde[T]) Append(dst []byte, v T) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return dst, fmt.Errorf("encode %T as JSON: %w", v, err)
	}
	return append(dst, b...), nil
}

func (jsonSerde[T]) Decode(src []byte) (T, error) {
	var v T
	if err := json.Unmarshal(src, &v); err != nil {
		return v, fmt.Errorf("decode JSON into %T: %w", v, err)
	}
	return v, nil
}
