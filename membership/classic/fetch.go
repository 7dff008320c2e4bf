package classic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Pauses while offsets are part of a transaction that is not yet decided.
const (
	minUnstablePause = 20 * time.Millisecond
	maxUnstablePause = 500 * time.Millisecond
)

// Committed returns the committed offsets of the given partitions; one without a commit is not in the map. While an
// offset belongs to a transaction that is not yet decided it waits, until ctx ends: what the former owner of a task
// has committed must be known before the task goes on.
func (d *Driver) Committed(ctx context.Context, tps []TopicPartition) (map[TopicPartition]Offset, error) {
	if len(tps) == 0 {
		return map[TopicPartition]Offset{}, nil
	}
	topics := map[string][]int32{}
	for _, tp := range tps {
		topics[tp.Topic] = append(topics[tp.Topic], tp.Partition)
	}
	ids, err := d.topicIDs(ctx, slices.Collect(maps.Keys(topics)))
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	for pause := minUnstablePause; ; pause = min(2*pause, maxUnstablePause) {
		offsets, err := d.fetchOffsets(ctx, topics, ids)
		switch {
		case errors.Is(err, kerr.UnstableOffsetCommit):
		case unknownTopic(err) && time.Since(begin) < topicPatience: // the coordinator has not heard of it yet
		default:
			return offsets, err
		}
		if wait(ctx, pause) != nil {
			return nil, fmt.Errorf("%w (gave up waiting: %w)", err, ctx.Err())
		}
	}
}

func unknownTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.UnknownTopicOrPartition)
}

func (d *Driver) fetchOffsets(ctx context.Context, topics map[string][]int32, ids topicIDs) (map[TopicPartition]Offset, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = d.cfg.Group
	for topic, partitions := range topics {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.TopicID, t.Partitions = topic, ids[topic], partitions
		group.Topics = append(group.Topics, t)
	}
	req.Groups = append(req.Groups, group)
	resp, err := req.RequestWith(ctx, d.client)
	if err != nil {
		return nil, fmt.Errorf("group %q: OffsetFetch: %w", d.cfg.Group, err)
	}
	offsets := map[TopicPartition]Offset{}
	for _, g := range resp.Groups {
		switch err := kerr.ErrorForCode(g.ErrorCode); err {
		case nil, kerr.GroupIDNotFound: // a group that nobody has committed to
		default:
			return nil, fmt.Errorf("group %q: OffsetFetch: %w", d.cfg.Group, err)
		}
		for _, t := range g.Topics {
			t.Topic = nameOf(t.Topic, t.TopicID, ids)
			if err := d.readOffsets(t, offsets); err != nil {
				return nil, err
			}
		}
	}
	return offsets, nil
}

// readOffsets adds one topic's answer to offsets.
func (d *Driver) readOffsets(t kmsg.OffsetFetchResponseGroupTopic, offsets map[TopicPartition]Offset) error {
	for _, p := range t.Partitions {
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
			return &OffsetError{Group: d.cfg.Group, Request: "OffsetFetch", Topic: t.Topic, Partition: p.Partition, Err: err}
		}
		if p.Offset < 0 {
			continue
		}
		o := Offset{Topic: t.Topic, Partition: p.Partition, At: p.Offset, LeaderEpoch: p.LeaderEpoch}
		if p.Metadata != nil {
			o.Metadata = *p.Metadata
		}
		offsets[TopicPartition{t.Topic, p.Partition}] = o
	}
	return nil
}
