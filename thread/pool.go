package thread

import "github.com/twmb/franz-go/pkg/kgo"

// recordPool reuses the slices that the client decodes fetched batches into. Without it they are most of the garbage of a
// thread. Only the record structs are reused: keys and values alias the fetch buffer, which lives as long as they do.
type recordPool struct{ spare chan []kgo.Record }

const (
	// pooledSlices bounds the slices kept, and pooledRecords the size of each.
	pooledSlices  = 32
	pooledRecords = 4 << 10
)

func newRecordPool() *recordPool { return &recordPool{spare: make(chan []kgo.Record, pooledSlices)} }

// GetRecords implements [kgo.PoolRecords].
func (p *recordPool) GetRecords(n int) []kgo.Record {
	select {
	case s := <-p.spare:
		if cap(s) >= n {
			return s
		}
	default:
	}
	return make([]kgo.Record, 0, n)
}

// PutRecords implements [kgo.PoolRecords]. The client has zeroed the records.
func (p *recordPool) PutRecords(s []kgo.Record) {
	if cap(s) > pooledRecords {
		return
	}
	select {
	case p.spare <- s:
	default:
	}
}
