package serde

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Int32 is four bytes, big-endian two's complement, as Kafka's IntegerSerializer writes it.
var Int32 Serde[int32] = int32Serde{}

// Int64 is eight bytes, big-endian two's complement, as Kafka's LongSerializer writes it. Counts use it.
var Int64 Serde[int64] = int64Serde{}

// Float64 is the eight bytes of IEEE 754, big-endian, as Kafka's DoubleSerializer writes it.
var Float64 Serde[float64] = float64Serde{}

// Bool is one byte, 1 or 0, as Kafka's BooleanSerializer writes it.
var Bool Serde[bool] = boolSerde{}

type int32Serde struct{}

func (int32Serde) Append(dst []byte, v int32) ([]byte, error) {
	return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
}

func (int32Serde) Decode(src []byte) (int32, error) {
	if len(src) != 4 {
		return 0, sizeError("int32", 4, len(src))
	}
	return int32(binary.BigEndian.Uint32(src)), nil
}

type int64Serde struct{}

func (int64Serde) Append(dst []byte, v int64) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
}

func (int64Serde) Decode(src []byte) (int64, error) {
	if len(src) != 8 {
		return 0, sizeError("int64", 8, len(src))
	}
	return int64(binary.BigEndian.Uint64(src)), nil
}

type float64Serde struct{}

func (float64Serde) Append(dst []byte, v float64) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(v)), nil
}

func (float64Serde) Decode(src []byte) (float64, error) {
	if len(src) != 8 {
		return 0, sizeError("float64", 8, len(src))
	}
	return math.Float64frombits(binary.BigEndian.Uint64(src)), nil
}

type boolSerde struct{}

func (boolSerde) Append(dst []byte, v bool) ([]byte, error) {
	if v {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

func (boolSerde) Decode(src []byte) (bool, error) {
	if len(src) != 1 {
		return false, sizeError("bool", 1, len(src))
	}
	if src[0] > 1 {
		return false, fmt.Errorf("decode bool: byte 0x%02x is neither 0 nor 1", src[0])
	}
	return src[0] == 1, nil
}
