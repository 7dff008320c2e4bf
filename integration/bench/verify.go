package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A replay says what the next record of a sink's partition must be. want returns an error that tells got from
// wanted; finished says what is still missing.
type replay interface {
	want(r *kgo.Record) error
	finished() error
}

// verify reads the sink at read_committed and compares it with a replay of the input. Nothing may be left
// open: the last stable offset must be the end.
func verify(ctx context.Context, o options, m *meter, check replay) error {
	opts := append(o.clientOptions(), o.consumerOptions()...)
	// control records are kept: a transaction's marker may be the last thing in a partition
	opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.ConsumeTopics(o.out))
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer client.Close()
	left, err := unread(ctx, client, o.out)
	if err != nil {
		return err
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
					if err := check.want(r); err != nil && wrong == nil {
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
	if err := check.finished(); err != nil {
		return fmt.Errorf("%s after %d records: %w", o.out, records, err)
	}
	m.emit(field{"ev", "verified"}, field{"records", records})
	return nil
}

// unread lists the end of each partition that holds anything, and fails if a transaction is open in one.
func unread(ctx context.Context, client *kgo.Client, topic string) (map[int32]int64, error) {
	adm := kadm.NewClient(client)
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
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
	left := map[int32]int64{}
	var open error
	ends.Each(func(e kadm.ListedOffset) {
		if s, _ := stable.Lookup(topic, e.Partition); s.Offset != e.Offset {
			open = fmt.Errorf("%s/%d: a transaction is open: stable up to %d, end %d", topic, e.Partition, s.Offset, e.Offset)
		}
		if e.Offset > 0 {
			left[e.Partition] = e.Offset
		}
	})
	return left, open
}
