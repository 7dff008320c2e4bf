package thread

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// fetchFailed handles an error that came in place of records. The client retries by itself what passes, so an error here is
// one that does not, or one to know of.
func (t *Thread) fetchFailed(topic string, fetched *kgo.FetchPartition, r *route) error {
	switch err := fetched.Err; {
	case r == nil:
		return nil // of a partition that is no longer ours
	case errors.Is(err, kerr.OffsetOutOfRange):
		t.outOfRange = append(t.outOfRange, partition{topic, fetched.Partition})
		return nil
	case kerr.IsRetriable(err):
		t.log.Warn("fetching", "thread", t.name, "topic", topic, "partition", fetched.Partition, "err", err)
		return nil
	default:
		return fmt.Errorf("task %v: fetching %s partition %d at offset %d: %w", r.owner.id, topic, fetched.Partition, r.next, err)
	}
}

// resetPositions moves partitions whose position the broker no longer has to where the reset rule says. Records were deleted
// before they were processed (retention), or the log was truncated: both are worth an error in the log.
func (t *Thread) resetPositions() error {
	lost := t.outOfRange
	t.outOfRange = nil
	for _, p := range lost {
		r, ok := t.routes[p]
		if !ok {
			continue
		}
		at := int64(offsetEarliest)
		if sub, ok := t.cfg.Plan.Sub(r.owner.id.Subtopology); ok && t.cfg.ResetLatest && !t.cfg.internal(sub, p.topic) {
			at = offsetLatest
		}
		ctx, cancel := context.WithTimeout(t.ctx, t.cfg.CommitTimeout)
		found, err := listOffsets(ctx, t.requests, at, []partition{p})
		cancel()
		if err != nil {
			return err
		}
		t.log.Error("position out of range: records were deleted before they were processed, or the log was truncated",
			"thread", t.name, "task", r.owner.id, "topic", p.topic, "partition", p.index, "position", r.next, "continues_at", found[p])
		t.stats.Resets.Add(1)
		err = t.changeRoutes(func() {
			r.next = found[p]
			t.consumer.RemoveConsumePartitions(map[string][]int32{p.topic: {p.index}})
			t.consumer.AddConsumePartitions(map[string]map[int32]kgo.Offset{p.topic: {p.index: kgo.NewOffset().At(found[p])}})
			r.owner.task.SeenAt(r.input, found[p])
		})
		if err != nil {
			return err
		}
	}
	return nil
}
