package check

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Read returns the committed content of a topic up to its end. It is an error if a transaction is open in it.
func Read(ctx context.Context, topic string, opts ...kgo.Opt) (Topic, error) {
	// control records are kept: a transaction's marker may be the last thing in a partition
	opts = append(opts, kgo.ConsumeTopics(topic), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ends, err := Ends(ctx, client, topic)
	if err != nil {
		return nil, err
	}
	content := make(Topic, len(ends))
	for unread(ends) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("read %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				content[r.Partition] = append(content[r.Partition], Record{Key: r.Key, Value: r.Value, Timestamp: r.Timestamp.UnixMilli()})
			}
			if r.Offset+1 >= ends[r.Partition] {
				ends[r.Partition] = 0
			}
		})
	}
	return content, nil
}

func unread(ends []int64) bool {
	for _, end := range ends {
		if end > 0 {
			return true
		}
	}
	return false
}

// Ends returns the end offset of each partition, 0 for an empty one. It is an error if a transaction is open:
// then the last stable offset is before the end.
func Ends(ctx context.Context, client *kgo.Client, topic string) ([]int64, error) {
	adm := kadm.NewClient(client)
	listed, err := adm.ListEndOffsets(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("ends of %s: %w", topic, err)
	}
	stable, err := adm.ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = stable.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("stable ends of %s: %w", topic, err)
	}
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("starts of %s: %w", topic, err)
	}
	ends := make([]int64, len(listed[topic]))
	for p := range ends {
		end, _ := listed.Lookup(topic, int32(p))
		if s, ok := stable.Lookup(topic, int32(p)); !ok || s.Offset != end.Offset {
			return nil, fmt.Errorf("%s/%d: a transaction is open: stable up to %d, end %d", topic, p, s.Offset, end.Offset)
		}
		if s, _ := starts.Lookup(topic, int32(p)); s.Offset < end.Offset {
			ends[p] = end.Offset
		}
	}
	return ends, nil
}
