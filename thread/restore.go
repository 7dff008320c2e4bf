package thread

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/statestore"
)

const (
	// restoreFetchBytes is how much of a changelog is fetched and applied at a time.
	restoreFetchBytes = 2 << 20
	// restorePause is how long a changelog is left alone whose next records are not there yet, as an open transaction hides
	// them. It holds no slot meanwhile, so that it keeps nobody else waiting.
	restorePause = 100 * time.Millisecond
	// restoreStuck is after how long without progress a partition is named in the log.
	restoreStuck = 10 * time.Second
)

// Restorer is a process' restore plane: it opens tasks and brings their state up to date with their changelogs, with a
// client and goroutines of its own, so that neither processing nor the group notices. It lives as long as the process and
// survives every change of the assignment.
//
// It also knows which tasks are open in the process, because a task that moves from one thread to another must be closed by
// the first before the second may open its directory.
type Restorer struct {
	client   *kgo.Client
	log      *slog.Logger
	isolate  kgo.IsolationLevel
	slots    chan struct{} // bounds how many changelogs are fetched and applied at once
	owners   *owners
	points   points
	progress Progress
}

// Progress counts what the restore plane has done and has before it. Any goroutine may read it.
type Progress struct {
	Tasks     atomic.Int64 // tasks being restored
	Remaining atomic.Int64 // changelog records (by offset) that are still to be restored
	Records   atomic.Int64 // changelog records restored since the start
	Bytes     atomic.Int64 // of their keys and values
	Rebuilds  atomic.Int64 // local copies given up because the changelog no longer continues them
}

// NewRestorer returns a restore plane over a client that it owns. workers bounds how many changelogs are fetched and applied at once,
// and with it the memory that takes.
func NewRestorer(client *kgo.Client, exactlyOnce bool, workers int, log *slog.Logger) *Restorer {
	isolation := kgo.ReadUncommitted()
	if exactlyOnce {
		isolation = kgo.ReadCommitted()
	}
	return &Restorer{
		client:  client,
		log:     log,
		isolate: isolation,
		slots:   make(chan struct{}, workers),
		owners:  newOwners(),
		points:  newPoints(log, "restore"),
	}
}

// Progress returns the counters, which go on counting.
func (r *Restorer) Progress() *Progress { return &r.progress }

// Close ends the client. All threads have ended.
func (r *Restorer) Close() { r.client.Close() }

// changelog is one store to bring up to date: from is the position of its local state, end where its log ended after
// the committed input positions were read (O4).
type changelog struct {
	task      taskid.ID
	store     string
	topic     string
	partition int32
	from, end int64
}

// restore applies a changelog from c.from to c.end. Under exactly-once, a transaction that was open at c.end is waited for:
// it is decided at the latest by its time-out.
func (r *Restorer) restore(ctx context.Context, state *statestore.State, c changelog) (records int64, err error) {
	left := max(c.end-c.from, 0)
	r.progress.Remaining.Add(left)
	defer func() { r.progress.Remaining.Add(-left) }()

	feed := changelogFeed{restorer: r, changelog: c}
	moved := time.Now()
	for next := c.from; next < c.end; {
		at, n, err := r.step(ctx, state, &feed, next)
		if err != nil {
			return records, fmt.Errorf("restoring store %q of task %v from %s partition %d at offset %d: %w",
				c.store, c.task, c.topic, c.partition, next, err)
		}
		if at == next {
			moved = r.watch(moved, c, next)
			if err := pause(ctx, restorePause); err != nil {
				return records, err
			}
			continue
		}
		records += int64(n)
		done := min(at-next, left)
		r.progress.Remaining.Add(-done)
		left -= done
		next, moved = at, time.Now()
	}
	return records, nil
}

// step fetches and applies a part of a changelog. It returns the offset to go on at, the same one when nothing was there.
func (r *Restorer) step(ctx context.Context, state *statestore.State, feed *changelogFeed, at int64) (next int64, n int, err error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return at, 0, context.Cause(ctx)
	}
	recs, next, err := feed.fetch(ctx, at)
	if err != nil || next == at {
		return at, 0, err
	}
	r.points.reach(AtRestore)
	if err := state.Restore(feed.store, recs, next); stalled(err) {
		r.log.Warn("local state cannot be written now, trying again", "task", feed.task, "err", err)
		return at, 0, nil
	} else if err != nil {
		return at, 0, err
	}
	r.progress.Records.Add(int64(len(recs)))
	return next, len(recs), nil
}

// watch names a changelog that does not move, and why that is most likely.
func (r *Restorer) watch(since time.Time, c changelog, at int64) time.Time {
	if time.Since(since) < restoreStuck {
		return since
	}
	r.log.Warn("restoring makes no progress: an open transaction or an offline partition holds it up",
		"task", c.task, "store", c.store, "topic", c.topic, "partition", c.partition, "offset", at, "end", c.end)
	return time.Now()
}

// changelogFeed fetches one changelog partition. It uses raw requests, because only they tell how far the log was read when
// the last records are transaction markers, aborted or compacted away: the client's consumer keeps that to itself.
type changelogFeed struct {
	restorer *Restorer
	changelog
	id     [16]byte
	leader int32
	known  bool
	recs   []statestore.ChangelogRecord
}

// fetch returns records from an offset on and the offset after them, the same one when nothing came. The records are
// valid until the next fetch.
func (f *changelogFeed) fetch(ctx context.Context, at int64) ([]statestore.ChangelogRecord, int64, error) {
	if err := f.locate(ctx); err != nil || !f.known {
		return nil, at, err
	}
	resp, err := f.restorer.client.Broker(int(f.leader)).RetriableRequest(ctx, f.request(at))
	if err != nil {
		if ctx.Err() != nil {
			return nil, at, context.Cause(ctx)
		}
		f.known = false
		f.restorer.log.Info("restoring: broker did not answer, asking again", "topic", f.topic, "partition", f.partition, "err", err)
		return nil, at, nil
	}
	fetched := resp.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(fetched.ErrorCode); err != nil {
		return nil, at, f.failed(err)
	}
	for _, topic := range fetched.Topics {
		for i := range topic.Partitions {
			return f.decode(at, &topic.Partitions[i])
		}
	}
	return nil, at, nil
}

func (f *changelogFeed) decode(at int64, p *kmsg.FetchResponseTopicPartition) ([]statestore.ChangelogRecord, int64, error) {
	opts := kgo.ProcessFetchPartitionOpts{Offset: at, IsolationLevel: f.restorer.isolate, Topic: f.topic, Partition: f.partition}
	got, next := kgo.ProcessFetchPartition(opts, p, kgo.DefaultDecompressor(), nil)
	if got.Err != nil {
		return nil, at, f.failed(got.Err)
	}
	f.recs = f.recs[:0]
	bytes := 0
	for _, rec := range got.Records {
		f.recs = append(f.recs, statestore.ChangelogRecord{Key: rec.Key, Value: rec.Value, Timestamp: rec.Timestamp.UnixMilli()})
		bytes += len(rec.Key) + len(rec.Value)
	}
	f.restorer.progress.Bytes.Add(int64(bytes))
	return f.recs, next, nil
}

// failed returns nil for an error of the partition that passes by itself.
func (f *changelogFeed) failed(err error) error {
	if errors.Is(err, kerr.OffsetOutOfRange) || !kerr.IsRetriable(err) {
		return err
	}
	f.known = false
	return nil
}

// locate finds the leader and the topic's id. known stays false while there is no leader.
func (f *changelogFeed) locate(ctx context.Context) error {
	if f.known {
		return nil
	}
	infos, err := describeTopics(ctx, f.restorer.client, f.topic)
	if err != nil {
		return err
	}
	info := infos[f.topic]
	if int(f.partition) >= len(info.leaders) {
		return fmt.Errorf("topic %s has %d partitions, but partition %d is needed", f.topic, len(info.leaders), f.partition)
	}
	f.id, f.leader = info.id, info.leaders[f.partition]
	f.known = f.leader >= 0
	return nil
}

func (f *changelogFeed) request(at int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis = 0 // an answer without records comes at once
	req.MaxBytes = restoreFetchBytes
	if f.restorer.isolate == kgo.ReadCommitted() {
		req.IsolationLevel = 1
	}
	req.SessionEpoch = -1 // no fetch session
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = f.topic, f.id
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = f.partition, at, restoreFetchBytes
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return req
}
