package task

import "github.com/millrace-io/millrace/internal/topology"

// queue is a ring of raw records. It copies the record structs, so the caller may reuse its slice at once; the bytes
// that they point to stay the caller's.
type queue struct {
	ring []topology.Record // length is a power of two, or 0
	head uint              // index of the next record, modulo the length
	tail uint
	high uint // slots that may hold references since the last clear
}

// minRing is the smallest ring that is allocated.
const minRing = 64

func (q *queue) len() int { return int(q.tail - q.head) }

// peek returns the record at the head. The queue must not be empty.
func (q *queue) peek() *topology.Record { return &q.ring[q.head&uint(len(q.ring)-1)] }

func (q *queue) push(recs []topology.Record) {
	if need := q.len() + len(recs); need > len(q.ring) {
		q.grow(need)
	}
	at := q.tail & uint(len(q.ring)-1)
	n := copy(q.ring[at:], recs)
	copy(q.ring, recs[n:])
	q.tail += uint(len(recs))
	q.high = max(q.high, min(q.tail, uint(len(q.ring))))
}

// pop drops the head. A slot keeps its references until it is written again or the queue runs empty: clearing one at a
// time would cost more than it frees.
func (q *queue) pop() {
	q.head++
	if q.head == q.tail {
		q.reset()
	}
}

func (q *queue) reset() {
	clear(q.ring[:q.high])
	q.head, q.tail, q.high = 0, 0, 0
}

func (q *queue) grow(need int) {
	size := max(minRing, len(q.ring))
	for size < need {
		size *= 2
	}
	ring := make([]topology.Record, size)
	n := 0
	if q.len() > 0 {
		at := q.head & uint(len(q.ring)-1)
		n = copy(ring, q.ring[at:min(int(at)+q.len(), len(q.ring))])
		n += copy(ring[n:], q.ring[:q.len()-n])
	}
	q.ring, q.head, q.tail, q.high = ring, 0, uint(n), uint(n)
}
