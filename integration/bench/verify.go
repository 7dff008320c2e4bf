package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/check"
)

// A replay says what the next record of a sink's partition must be. want returns an error that tells got from
// wanted; finished says what is still missing.
type replay interface {
	want(r *kgo.Record) error
	finished() error
}

// verify reads the sink at read_committed and compares it with a replay of the input. Nothing may be left
// open: the last stable offset must be the end.
func verify(ctx context.Context, o options, m *meter, want replay) error {
	opts := append(o.clientOptions(), o.consumerOptions()...)
	// control records are kept: a transaction's marker may be the last thing in a partition
	opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.ConsumeTopics(o.out))
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer client.Close()
	ends, err := check.Ends(ctx, client, o.out)
	if err != nil {
		return err
	}
	left := map[int32]int64{}
	for p, end := range ends {
		if end > 0 {
			left[int32(p)] = end
		}
	}
	records := 0
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := firstError(ctx, fetches); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %d partitions not read to their end: %w", o.out, len(left), err)
		}
		var wrong error
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, r := range p.Records {
				if !r.Attrs.IsControl() {
					records++
					if err := want.want(r); err != nil && wrong == nil {
						wrong = fmt.Errorf("%s/%d at offset %d: %w", r.Topic, r.Partition, r.Offset, err)
					}
				}
				if r.Offset+1 >= left[r.Partition] {
					delete(left, r.Partition)
				}
			}
		})
		if wrong != nil {
			return wrong
		}
	}
	if err := want.finished(); err != nil {
		return fmt.Errorf("%s after %d records: %w", o.out, records, err)
	}
	m.emit(field{"ev", "verified"}, field{"records", records})
	return nil
}
