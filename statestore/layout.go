package statestore

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Keys in the engine, all integers big-endian:
//
//	0x0000 ‖ letter ‖ …                                        meta rows, see meta.go
//	store id (2) ‖ key                                         key-value store
//	store id (2) ‖ segment (8) ‖ terminated key ‖ start (8)    window store
//
// and every value of a store is timestamp (8) ‖ value.
//
// A window's segment is its start divided by the store's segment interval. Segments come first so that expiry is one
// range deletion a segment; the key is terminated (0x00 becomes 0x00 0xff, the end is 0x00 0x01) so that the windows of
// one key lie together and in order, which plain concatenation does not give for keys of different lengths.

const (
	storePrefixLen = 2
	timestampLen   = 8
	escape         = 0x00
	escapedZero    = 0xff
	terminator     = 0x01
)

// appendStorePrefix appends the id that begins every engine key of a store.
func appendStorePrefix(dst []byte, id uint16) []byte { return binary.BigEndian.AppendUint16(dst, id) }

// appendWindowKey appends the part of a window row's key that follows the store id.
func appendWindowKey(dst []byte, segment uint64, key []byte, start int64) []byte {
	dst = appendWindowPrefix(dst, segment, key)
	return binary.BigEndian.AppendUint64(dst, uint64(start))
}

func appendWindowPrefix(dst []byte, segment uint64, key []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, segment)
	for {
		zero := bytes.IndexByte(key, escape)
		if zero < 0 {
			break
		}
		dst = append(dst, key[:zero]...)
		dst = append(dst, escape, escapedZero)
		key = key[zero+1:]
	}
	dst = append(dst, key...)
	return append(dst, escape, terminator)
}

// appendPlainKey appends the key inside a window row's key as the user gave it, and returns the window start. row is
// what follows the store id; it was written by appendWindowKey.
func appendPlainKey(dst, row []byte) ([]byte, int64) {
	start := windowStart(row)
	escaped := row[8 : len(row)-8-2]
	for {
		zero := bytes.IndexByte(escaped, escape)
		if zero < 0 {
			return append(dst, escaped...), start
		}
		dst = append(dst, escaped[:zero+1]...)
		escaped = escaped[zero+2:]
	}
}

func windowStart(row []byte) int64 {
	return int64(binary.BigEndian.Uint64(row[len(row)-8:]))
}

// minSegmentInterval is Kafka Streams' lower bound for the length of a segment, in milliseconds.
const minSegmentInterval = 60_000

// segmentInterval is the length of a segment in milliseconds: long enough that few range deletions happen, short
// enough that at most half as much again as the retention is on disk.
func segmentInterval(retention int64) int64 { return max(retention/2, minSegmentInterval) }

// Changelog keys of window stores: key ‖ start (8) ‖ sequence number (4). The number is 0 in stores without duplicates.
const windowChangelogSuffix = 8 + 4

// appendWindowChangelogKey completes a changelog key whose plain key is at the end of dst.
func appendWindowChangelogKey(dst []byte, start int64) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(start))
	return binary.BigEndian.AppendUint32(dst, 0)
}

// parseWindowChangelogKey splits a changelog key; ok is false when it is too short or its start is negative.
func parseWindowChangelogKey(raw []byte) (key []byte, start int64, ok bool) {
	if len(raw) < windowChangelogSuffix {
		return nil, 0, false
	}
	cut := len(raw) - windowChangelogSuffix
	start = int64(binary.BigEndian.Uint64(raw[cut:]))
	return raw[:cut], start, start >= 0
}

func appendTimestamp(dst []byte, ts int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(ts))
}

// splitRow splits a row into value and timestamp. One that is too short was not written by this package.
func splitRow(dir string, row []byte) (value []byte, ts int64, err error) {
	if len(row) < timestampLen {
		return nil, 0, &StoreError{
			Op: "read", Dir: dir, Corrupt: true, Err: fmt.Errorf("row of %d bytes, must have at least %d", len(row), timestampLen),
			Hint: "the local copy is damaged: remove it, it is restored from the changelog",
		}
	}
	return row[timestampLen:], int64(binary.BigEndian.Uint64(row)), nil
}
