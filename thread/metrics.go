package thread

import (
	"sync/atomic"
	"time"

	"github.com/millrace-io/millrace/internal/topology"
)

// Stats are the counters of a thread. It writes them a few times per turn, never per record; any goroutine may read them.
type Stats struct {
	RecordsIn  atomic.Int64 // records fetched and given to tasks
	Processed  atomic.Int64 // records that tasks have taken, skipped ones included
	RecordsOut atomic.Int64 // records produced to topics, changelogs not included
	Changelog  atomic.Int64 // records produced to changelogs
	Drops      [topology.DropReasons]atomic.Int64
	Expired    atomic.Int64 // writes to windows that were out of retention
	Stale      atomic.Int64 // fetched records of partitions that were not the thread's any more; their owner reads them

	Commits          atomic.Int64
	CommitNanos      atomic.Int64 // time spent in them
	CommitMaxNanos   atomic.Int64 // the longest
	PutOff           atomic.Int64 // commits that had to wait for a rebalance or an answer
	Aborts           atomic.Int64 // transactions
	Lost             atomic.Int64 // assignments lost without a revocation
	Resets           atomic.Int64 // partitions whose position was out of range and was reset
	CloseErrors      atomic.Int64 // states that did not close cleanly; nothing is lost
	UncommittedBytes atomic.Int64
}

func (s *Stats) observeCommit(took time.Duration) {
	s.Commits.Add(1)
	s.CommitNanos.Add(int64(took))
	if int64(took) > s.CommitMaxNanos.Load() { // the thread is the only writer
		s.CommitMaxNanos.Store(int64(took))
	}
}

// collect adds what the task has counted since the last time.
func (o *owned) collect(s *Stats) {
	now := o.stats
	s.Processed.Add(now.Processed - o.published.Processed)
	for i := range now.Drops {
		if n := now.Drops[i] - o.published.Drops[i]; n > 0 {
			s.Drops[i].Add(n)
		}
	}
	o.published = now
	if o.state == nil {
		return
	}
	expired := o.state.Stats().ExpiredPuts
	s.Expired.Add(expired - o.expired)
	o.expired = expired
}
