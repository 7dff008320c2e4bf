package serde

// Bytes passes bytes through.
//
// Decode aliases its source and is therefore free. The slice is valid while the record is being processed, that is
// until the user function or the operator that received it returns; copy it to keep it.
var Bytes Serde[[]byte] = bytesSerde{}

type bytesSerde struct{}

func (bytesSerde) Append(dst, v []byte) ([]byte, error) { return append(dst, v...), nil }

// Decode cuts the capacity as well: a function that appends to the value must not write into what follows it in the
// fetched batch.
func (bytesSerde) Decode(src []byte) ([]byte, error) { return src[:len(src):len(src)], nil }
