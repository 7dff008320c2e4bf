// Package murmur2 holds the 32-bit murmur2 hash with the seed that Kafka's Java clients use, and Kafka's mapping from
// a record key to a partition.
//
// Every producer of keyed records must agree on this mapping: a record that a Java service wrote and one that a
// Millrace task wrote under the same key have to meet in the same partition, otherwise grouped state is split.
package murmur2

import "encoding/binary"

const (
	seed = 0x9747b28c
	mul  = 0x5bd1e995
	rot  = 24
)

// Sum returns Kafka's murmur2 of data.
func Sum(data []byte) uint32 {
	h := uint32(seed) ^ uint32(len(data))
	for len(data) >= 4 {
		k := binary.LittleEndian.Uint32(data)
		k *= mul
		k ^= k >> rot
		k *= mul
		h *= mul
		h ^= k
		data = data[4:]
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(data[0])
		h *= mul
	}
	h ^= h >> 13
	h *= mul
	h ^= h >> 15
	return h
}

// Partition returns the partition of a record with this key in a topic of n partitions, as Kafka's default partitioner
// does for a record that has a key. n must be positive.
func Partition(key []byte, n int32) int32 {
	return int32(Sum(key)&0x7fffffff) % n
}
