package serde

// String is text as its bytes. Invalid UTF-8 passes through unchanged in both directions: a string is bytes in Go, and
// replacing characters would change keys silently. Decode copies.
var String Serde[string] = stringSerde{}

type stringSerde struct{}

func (stringSerde) Append(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil }
func (stringSerde) Decode(src []byte) (string, error)           { return string(src), nil }
