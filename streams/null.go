package streams

import "reflect"

// nullness tells the null of a Go type: nil for pointers, interfaces and []byte. Other types have none, and then is is
// nil. It is found once for each node, so that a record pays at most one call.
type nullness[T any] struct{ is func(T) bool }

func nullOf[T any]() nullness[T] {
	if is, ok := any(func(b []byte) bool { return b == nil }).(func(T) bool); ok {
		return nullness[T]{is}
	}
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Interface:
		// A pointer in an interface is stored directly, so neither conversion allocates.
		return nullness[T]{func(v T) bool {
			var null T
			return any(v) == any(null)
		}}
	default:
		return nullness[T]{}
	}
}

// nullable reports whether user functions may see a null of the type.
func (n nullness[T]) nullable() bool { return n.is != nil }

// null reports whether v is the null of its type.
func (n nullness[T]) null(v T) bool { return n.is != nil && n.is(v) }
