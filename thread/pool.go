package thread

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// spares keeps things for reuse and gives the one back first that came last: it is still in the processor's cache, and no
// more of them come into being than are in use at once. Any goroutine may use it; it locks once for many records.
type spares[T any] struct {
	mu   sync.Mutex
	kept []T
	most int
}

func (s *spares[T]) take() (spare T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.kept)
	if n == 0 {
		return spare, false
	}
	spare = s.kept[n-1]
	clear(s.kept[n-1:])
	s.kept = s.kept[:n-1]
	return spare, true
}

// keep keeps a thing, or lets it go when there are enough.
func (s *spares[T]) keep(spare T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) < s.most {
		s.kept = append(s.kept, spare)
	}
}

func (s *spares[T]) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept)
}

// recordPool reuses the slices that the client decodes fetched batches into. Without it they are most of the garbage of a
// thread: a record of a few bytes takes 170 decoded. Only the record structs are reused: keys and values alias the fetch
// buffer, which lives as long as they do.
type recordPool struct {
	mu      sync.Mutex
	kept    [][]kgo.Record
	records int // sum of their capacities
}

// pooledRecords bounds the records that are kept, 11 MB: what four partitions of 1 MiB hold at 64 bytes a record.
const pooledRecords = 64 << 10

func newRecordPool() *recordPool { return &recordPool{} }

// GetRecords implements [kgo.PoolRecords]. A spare slice that is too short is let go: so the pool comes to hold slices of
// the size that is needed.
func (p *recordPool) GetRecords(n int) []kgo.Record {
	if s := p.take(); cap(s) >= n {
		return s
	}
	return make([]kgo.Record, 0, n)
}

func (p *recordPool) take() (s []kgo.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.kept) - 1; last >= 0 {
		s, p.kept[last] = p.kept[last], nil
		p.kept = p.kept[:last]
		p.records -= cap(s)
	}
	return s
}

// PutRecords implements [kgo.PoolRecords]. The client has zeroed the records.
func (p *recordPool) PutRecords(s []kgo.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.records+cap(s) <= pooledRecords {
		p.kept = append(p.kept, s)
		p.records += cap(s)
	}
}
