package statestore

import "encoding/binary"

// OpKind is what an operation of a [Batch] does.
type OpKind uint8

const (
	// OpSet sets a key.
	OpSet OpKind = iota
	// OpDelete deletes a key.
	OpDelete
	// OpDeleteRange deletes lo <= key < hi.
	OpDeleteRange
)

// Batch is an ordered list of writes that an [Engine] applies atomically; a later operation wins over an earlier one.
// It owns copies of its keys and values in one buffer that Reset keeps, so a batch used once a commit does not allocate
// in the steady state. The zero value is empty and ready.
type Batch struct {
	data []byte // {kind, uvarint len a, uvarint len b, a, b}
	ops  int
}

// keptBatchBytes bounds the buffer that Reset keeps: one large commit must not stay in memory for ever.
const keptBatchBytes = 1 << 20

// Set sets key to value.
func (b *Batch) Set(key, value []byte) { b.add(OpSet, key, value) }

// Delete deletes key.
func (b *Batch) Delete(key []byte) { b.add(OpDelete, key, nil) }

// DeleteRange deletes every key with lo <= key < hi, also those set earlier in this batch. Engines pay for each range
// in later reads: use it for whole segments, not for a few keys.
func (b *Batch) DeleteRange(lo, hi []byte) { b.add(OpDeleteRange, lo, hi) }

func (b *Batch) add(kind OpKind, first, second []byte) {
	b.data = append(b.data, byte(kind))
	b.data = binary.AppendUvarint(b.data, uint64(len(first)))
	b.data = binary.AppendUvarint(b.data, uint64(len(second)))
	b.data = append(b.data, first...)
	b.data = append(b.data, second...)
	b.ops++
}

// Len is the number of operations.
func (b *Batch) Len() int { return b.ops }

// Size is the number of bytes the operations take.
func (b *Batch) Size() int { return len(b.data) }

// Reset empties the batch.
func (b *Batch) Reset() {
	b.data, b.ops = b.data[:0], 0
	if cap(b.data) > keptBatchBytes {
		b.data = nil
	}
}

// Each calls fn for every operation in order and stops at the first error. For OpSet the arguments are key and value,
// for OpDelete the key, for OpDeleteRange the bounds. The slices are valid until Reset.
func (b *Batch) Each(fn func(kind OpKind, first, second []byte) error) error {
	for rest := b.data; len(rest) > 0; {
		kind := OpKind(rest[0])
		rest = rest[1:]
		n, w := binary.Uvarint(rest)
		rest = rest[w:]
		m, w := binary.Uvarint(rest)
		rest = rest[w:]
		first, second := rest[:n:n], rest[n:n+m:n+m]
		rest = rest[n+m:]
		if err := fn(kind, first, second); err != nil {
			return err
		}
	}
	return nil
}
