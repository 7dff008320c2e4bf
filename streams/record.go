package streams

import "github.com/millrace-io/millrace/internal/topology"

// record is what flows between operators, by value: passed by pointer, a local would escape to the heap.
//
// For types with a null of their own, noKey and tombstone say the same as the key and the value; for other types they
// are the only trace of a null, and key or value is then the zero value.
type record[K, V any] struct {
	key       K
	value     V
	ts        int64 // ms
	headers   []topology.Header
	noKey     bool
	tombstone bool
}

// change is an update of a table row. old is only filled when somebody downstream asked for it.
type change[V any] struct {
	new, old       V
	hasNew, hasOld bool
}

// row returns the new value, and the zero value for a deletion: an operator that deletes may leave what it saw in new.
func (c *change[V]) row() (v V) {
	if c.hasNew {
		v = c.new
	}
	return v
}

// receiver is an operator of one task, as its parent sees it.
type receiver[K, V any] interface {
	// receive processes one record. An error ends the processing of the input record; what may be skipped has been
	// decided before.
	receive(r record[K, V]) error
}

// outlet is where an operator's children hang, in the order in which they were declared.
type outlet[K, V any] struct{ children []receiver[K, V] }

func (o *outlet[K, V]) forward(r record[K, V]) error {
	for _, child := range o.children {
		if err := child.receive(r); err != nil {
			return err
		}
	}
	return nil
}

// derive returns a record with a new key and value and everything else of r.
func derive[J, W, K, V any](r *record[K, V], key J, value W) record[J, W] {
	return record[J, W]{key: key, value: value, ts: r.ts, headers: r.headers, noKey: r.noKey, tombstone: r.tombstone}
}
