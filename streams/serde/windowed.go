package serde

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/millrace-io/millrace/streams/window"
)

// Windowed returns the serde of windowed keys on user topics, as Kafka's TimeWindowedSerde writes them: the bytes of
// the inner key, then the window's start as eight bytes. The end is not stored; Decode adds size to the start.
//
// Records with such a key are partitioned by the inner key alone, so all windows of a key share a partition.
func Windowed[K any](inner Serde[K], size time.Duration) Serde[window.Key[K]] {
	return windowedSerde[K]{inner: inner, size: size.Milliseconds()}
}

type windowedSerde[K any] struct {
	inner Serde[K]
	size  int64 // ms
}

const startBytes = 8

func (s windowedSerde[K]) Append(dst []byte, k window.Key[K]) ([]byte, error) {
	dst, err := s.inner.Append(dst, k.Key)
	if err != nil {
		return dst, err
	}
	return binary.BigEndian.AppendUint64(dst, uint64(k.Start)), nil
}

func (s windowedSerde[K]) Decode(src []byte) (window.Key[K], error) {
	cut := len(src) - startBytes
	if cut < 0 {
		return window.Key[K]{}, fmt.Errorf("decode windowed key: want at least %d bytes, got %d", startBytes, len(src))
	}
	key, err := s.inner.Decode(src[:cut])
	if err != nil {
		return window.Key[K]{}, fmt.Errorf("decode windowed key: %w", err)
	}
	start := int64(binary.BigEndian.Uint64(src[cut:]))
	if start < 0 {
		return window.Key[K]{}, fmt.Errorf("decode windowed key: window start %d is negative", start)
	}
	return window.Key[K]{Key: key, Start: start, End: window.End(start, s.size)}, nil
}

// PartitionKey implements [Partitioned].
func (s windowedSerde[K]) PartitionKey(encoded []byte) int { return len(encoded) - startBytes }

// Partitioned is implemented by key serdes whose records are not partitioned by all bytes of the key.
type Partitioned interface {
	// PartitionKey returns how many leading bytes of the encoded key the default partitioner hashes.
	PartitionKey(encoded []byte) int
}
