package thread

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/internal/taskid"
)

// fetchFailed handles an error that came in place of records. The client retries by itself what passes, so an error here is
// one that does not, or one to know of.
func (t *Thread) fetchFailed(topic string, fetched *kgo.FetchPartition, r *route) error {
	err := fetched.Err
	switch {
	case r == nil:
		return nil // of a partition that is no longer ours
	case errors.Is(err, kerr.OffsetOutOfRange):
		t.outOfRange = append(t.outOfRange, partition{topic, fetched.Partition})
		return nil
	case !kerr.IsRetriable(err):
	default:
		if r.failed.IsZero() {
			r.failed = t.now
			t.log.Warn("fetching fails", "thread", t.name, "topic", topic, "partition", fetched.Partition, "err", err)
		}
		if !missing(err) {
			r.absent = time.Time{}
			return nil
		}
		if r.absent.IsZero() {
			r.absent = t.now
		}
		if t.now.Sub(r.absent) < missingLimit {
			return nil
		}
	}
	return &FetchError{Task: r.owner.id, Topic: topic, Partition: fetched.Partition, Offset: r.next, Missing: missing(err), Err: err}
}

// FetchError tells that a partition cannot be read.
type FetchError struct {
	Task      taskid.ID
	Topic     string
	Partition int32
	Offset    int64
	Missing   bool // the topic was deleted
	Err       error
}

func (e *FetchError) Error() string {
	hint := ""
	if e.Missing {
		hint = " (the topic was deleted while the application ran; if it was made again, process it under another application id)"
	}
	return fmt.Sprintf("task %v: fetching %s partition %d at offset %d: %v%s", e.Task, e.Topic, e.Partition, e.Offset, e.Err, hint)
}

// Unwrap returns the broker's answer.
func (e *FetchError) Unwrap() error { return e.Err }

// missingLimit is how long a topic may be unknown to the brokers, which is so for a moment when leaders change.
const missingLimit = 10 * time.Second

// missing tells that a topic was deleted, perhaps to be made again: neither positions nor state would be true of the new one.
func missing(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
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
		var found map[partition]int64
		err := t.patiently("offsets of a partition", func(ctx context.Context) (err error) {
			found, err = listOffsets(ctx, t.requests, at, []partition{p})
			return err
		})
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
