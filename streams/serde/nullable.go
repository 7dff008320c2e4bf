package serde

// Nullable lifts a serde to the pointer type, so that user functions see Kafka's null as nil and can return nil for it.
// It costs one allocation for each decoded value.
func Nullable[T any](inner Serde[T]) Serde[*T] { return nullableSerde[T]{inner} }

type nullableSerde[T any] struct{ inner Serde[T] }

// Append is never called with nil by the runtime; nil appends nothing.
func (s nullableSerde[T]) Append(dst []byte, v *T) ([]byte, error) {
	if v == nil {
		return dst, nil
	}
	return s.inner.Append(dst, *v)
}

func (s nullableSerde[T]) Decode(src []byte) (*T, error) {
	v, err := s.inner.Decode(src)
	if err != nil {
		return nil, err
	}
	return &v, nil
}
