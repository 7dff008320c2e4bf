package task

import "github.com/millrace-io/millrace/internal/topology"

// Outbox holds encoded records on their way to Kafka. It owns their bytes in an arena. The task fills one; the owner takes
// it with [Task.SwapOutbox] and gives it back, reset, when every record has been acknowledged.
type Outbox struct {
	Records []OutRecord

	chunk   []byte   // what is written now; its length is what is used
	spare   [][]byte // empty chunks, for reuse
	full    [][]byte
	headers []topology.Header
}

// OutRecord is one record to produce.
type OutRecord struct {
	// Topic is an index into Subtopology.Sinks; changelogs follow: len(Sinks) plus the index into Subtopology.Stores.
	Topic int32
	// Partition is -1 for the default partitioner: murmur2 of the key, or the producer's choice when there is no key.
	Partition int32
	// KeySuffix is how many bytes at the end of the key the default partitioner leaves out: a windowed key is partitioned
	// by the key inside.
	KeySuffix  int32
	Key, Value []byte // nil is Kafka's null
	Headers    []topology.Header
	Timestamp  int64 // ms
}

// PartitionKey returns the bytes that the default partitioner hashes, nil when the record has no key.
func (r *OutRecord) PartitionKey() []byte {
	return r.Key[:len(r.Key)-int(r.KeySuffix)]
}

const (
	// chunkSize is the size of an arena chunk; a longer record gets a chunk of its own.
	chunkSize = 64 << 10
	// minRoom is the room below which a chunk counts as full: a serde that outgrows it costs one copy.
	minRoom = 512
	// maxSpare bounds the chunks, and maxRecords the record slots, that a reset outbox keeps: one burst must not stay in
	// memory for ever.
	maxSpare   = 16
	maxRecords = 16 << 10
)

// buffer returns an empty slice with the free room of the current chunk.
func (o *Outbox) buffer() []byte {
	if cap(o.chunk)-len(o.chunk) < minRoom {
		o.nextChunk()
	}
	return o.chunk[len(o.chunk):]
}

// keep moves the chunk's mark behind buf, which the encoder grew from buffer. If append moved it to new memory, the
// record keeps that memory, and a chunk that was too short for it counts as full: otherwise records a little longer
// than the rest of a chunk would each allocate.
func (o *Outbox) keep(buf []byte) {
	switch {
	case cap(buf) == cap(o.chunk)-len(o.chunk):
		o.chunk = o.chunk[:len(o.chunk)+len(buf)]
	case len(o.chunk) > 0:
		o.nextChunk()
	}
}

// alloc returns n bytes of the arena.
func (o *Outbox) alloc(n int) []byte {
	if cap(o.chunk)-len(o.chunk) < n {
		if n > chunkSize/4 {
			return make([]byte, n)
		}
		o.nextChunk()
	}
	at := len(o.chunk)
	o.chunk = o.chunk[:at+n]
	return o.chunk[at : at+n : at+n]
}

func (o *Outbox) nextChunk() {
	if o.chunk != nil {
		o.full = append(o.full, o.chunk)
	}
	if n := len(o.spare); n > 0 {
		o.chunk = o.spare[n-1]
		o.spare = o.spare[:n-1]
		return
	}
	o.chunk = make([]byte, 0, chunkSize)
}

// copyHeaders copies headers with their values: the input's may live in a slab that its owner reuses.
func (o *Outbox) copyHeaders(headers []topology.Header) []topology.Header {
	from := len(o.headers)
	for _, h := range headers {
		if h.Value != nil {
			value := o.alloc(len(h.Value))
			copy(value, h.Value)
			h.Value = value
		}
		o.headers = append(o.headers, h)
	}
	return o.headers[from:len(o.headers):len(o.headers)]
}

// Bytes is the memory that the arena holds.
func (o *Outbox) Bytes() int {
	sum := cap(o.chunk)
	for _, c := range o.full {
		sum += cap(c)
	}
	return sum
}

// Reset empties the outbox for reuse. No slice of its records may be in use any more.
func (o *Outbox) Reset() {
	clear(o.Records)
	o.Records = o.Records[:0]
	if cap(o.Records) > maxRecords {
		o.Records = nil
	}
	clear(o.headers)
	o.headers = o.headers[:0]
	for _, c := range o.full {
		if len(o.spare) < maxSpare {
			o.spare = append(o.spare, c[:0])
		}
	}
	clear(o.full)
	o.full = o.full[:0]
	o.chunk = o.chunk[:0]
}

// sink is the way of one sink node into the task's current outbox.
type sink struct {
	task  *Task
	topic int32
}

func (s *sink) Buffer() []byte { return s.task.outbox.buffer() }

func (s *sink) Emit(e topology.Emission) {
	o := s.task.outbox
	o.keep(e.Buf)
	r := OutRecord{Topic: s.topic, Partition: -1, KeySuffix: int32(e.KeySuffix), Timestamp: e.Timestamp}
	if !e.NoKey {
		r.Key = e.Buf[:e.Cut:e.Cut]
	}
	if !e.Tombstone {
		r.Value = e.Buf[e.Cut:len(e.Buf):len(e.Buf)]
	}
	if len(e.Headers) > 0 {
		r.Headers = o.copyHeaders(e.Headers)
	}
	o.Records = append(o.Records, r)
	s.task.stats.Emitted++
}
