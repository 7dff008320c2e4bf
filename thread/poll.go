package thread

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// failedPollPause is the pause after a poll that brought errors only: what is wrong with a topic is told by every poll at once.
const failedPollPause = 100 * time.Millisecond

// fetcher polls on a goroutine of its own, so that the thread can wait for records and for everything else in one select,
// and hands over one batch at a time. A thread that has enough does not take the next batch: back-pressure needs no
// pausing, which in the client would throw away what is buffered.
//
// Partitions change only between stop and start. stop waits until no poll runs and returns the batch that was in hand, so
// no batch of the old assignment can come after partitions were removed, or set back to an earlier offset. Without that
// a batch from before a seek would look like one from after it: both may begin beyond the wanted offset.
type fetcher struct {
	client     consumer
	maxRecords int
	sizes      fetchSizes
	batches    chan kgo.Fetches
	cancel     context.CancelFunc
	done       chan kgo.Fetches // closed at the end; may first hold a batch that nobody took
}

func newFetcher(client consumer, maxRecords int, sizes fetchSizes) *fetcher {
	return &fetcher{client: client, maxRecords: maxRecords, sizes: sizes, batches: make(chan kgo.Fetches)}
}

// start begins to poll. The caller must stop before it starts again.
func (f *fetcher) start(ctx context.Context) {
	ctx, f.cancel = context.WithCancel(ctx)
	f.sizes.partition = min(firstFetchBytes, f.sizes.maxPartition)
	f.sizes.ask(f.client)
	f.done = make(chan kgo.Fetches, 1)
	go f.run(ctx, f.done)
}

func (f *fetcher) run(ctx context.Context, done chan<- kgo.Fetches) {
	defer close(done)
	for ctx.Err() == nil {
		batch := f.client.PollRecords(ctx, f.maxRecords)
		if batch.IsClientClosed() {
			return
		}
		f.sizes.polled(f.client, batch.NumRecords(), f.maxRecords)
		if batch.Err0() != nil && ctx.Err() != nil {
			return // only the end of our own wait
		}
		select {
		case f.batches <- batch:
		case <-ctx.Done():
			done <- batch
			return
		}
		if batch.Err() != nil && batch.Empty() && pause(ctx, failedPollPause) != nil {
			return
		}
	}
}

// stop ends the polling and returns the batch in hand, if there is one.
func (f *fetcher) stop() (kgo.Fetches, bool) {
	if f.cancel == nil {
		return nil, false
	}
	f.cancel()
	f.cancel = nil
	batch, ok := <-f.done
	return batch, ok
}

// firstFetchBytes is how much of a partition the first fetch after a change of partitions asks for.
const firstFetchBytes = 32 << 10

// fetchSizes lets fetches grow from small to the configured size. One fetch brings the records of all partitions of a broker,
// and the client sends the next only when it is used up: behind a long first fetch of a source with a backlog, the
// repartition topic that this very backlog fills would have to wait until all of it is processed.
type fetchSizes struct {
	max, maxPartition int32 // bytes, as configured
	partition         int32 // asked for now
}

// polled doubles what is asked for once a fetch is used up, which a poll of fewer records than it could have brought tells.
func (s *fetchSizes) polled(client consumer, records, most int) {
	if records == 0 || records >= most || s.partition >= s.maxPartition {
		return
	}
	s.partition = min(2*s.partition, s.maxPartition)
	s.ask(client)
}

func (s *fetchSizes) ask(client consumer) { client.UpdateFetchMaxBytes(s.max, s.partition) }
