package thread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Kafka's special timestamps in ListOffsets.
const (
	offsetLatest   = -1
	offsetEarliest = -2
)

// listOffsets asks for the first or the next offset of partitions. The next offset counts uncommitted records too: it is
// where the log ends, not where read_committed would stop.
func listOffsets(ctx context.Context, client *kgo.Client, at int64, partitions []partition) (map[partition]int64, error) {
	offsets := make(map[partition]int64, len(partitions))
	begin := time.Now()
	for len(partitions) > 0 {
		resp, err := listOffsetsRequest(at, partitions).RequestWith(ctx, client)
		if errors.Is(err, kerr.UnknownTopicOrPartition) && time.Since(begin) < unknownPatience {
			// The client looks for leaders in a cache that may be older than the partition: asking by name renews it.
			if _, err := describeTopics(ctx, client, topicsOf(partitions)...); err != nil {
				return nil, err
			}
			if err := pause(ctx, retryBackoff); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("asking for offsets of %s: %w", partitions[0].topic, err)
		}
		var again []partition
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				which := partition{topic.Topic, p.Partition}
				switch err := kerr.ErrorForCode(p.ErrorCode); {
				case err == nil:
					offsets[which] = p.Offset
				case kerr.IsRetriable(err):
					again = append(again, which)
				default:
					return nil, fmt.Errorf("asking for offsets of %s partition %d: %w", which.topic, which.index, err)
				}
			}
		}
		if partitions = again; len(again) > 0 {
			if err := pause(ctx, retryBackoff); err != nil {
				return nil, err
			}
		}
	}
	return offsets, nil
}

func listOffsetsRequest(at int64, partitions []partition) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	at0 := map[string]int{}
	for _, p := range partitions {
		i, ok := at0[p.topic]
		if !ok {
			i = len(req.Topics)
			at0[p.topic] = i
			topic := kmsg.NewListOffsetsRequestTopic()
			topic.Topic = p.topic
			req.Topics = append(req.Topics, topic)
		}
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition, rp.Timestamp = p.index, at
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, rp)
	}
	return req
}

// topicsOf lists the topics of partitions.
func topicsOf(partitions []partition) []string {
	var topics []string
	for _, p := range partitions {
		if !slices.Contains(topics, p.topic) {
			topics = append(topics, p.topic)
		}
	}
	return topics
}

// unknownPatience is how long a partition may be unknown before that is an error: brokers learn of a new one after each other.
const unknownPatience = 10 * time.Second

// retryBackoff is the pause before a request is repeated that failed for a passing reason.
const retryBackoff = 100 * time.Millisecond

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// topicInfo is what the brokers' metadata say of a topic.
type topicInfo struct {
	id      [16]byte
	leaders []int32 // by partition, -1 where there is none now
}

// describeTopics asks for the metadata of topics. A topic that does not exist is an error that names it.
func describeTopics(ctx context.Context, client *kgo.Client, names ...string) (map[string]topicInfo, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("asking for the metadata of %v: %w", names, err)
	}
	infos := make(map[string]topicInfo, len(names))
	for _, topic := range resp.Topics {
		name := *topic.Topic
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil && !kerr.IsRetriable(err) || len(topic.Partitions) == 0 {
			return nil, fmt.Errorf("topic %s: %w", name, kerr.ErrorForCode(topic.ErrorCode))
		}
		info := topicInfo{id: topic.TopicID, leaders: make([]int32, len(topic.Partitions))}
		for _, p := range topic.Partitions {
			if int(p.Partition) < len(info.leaders) {
				info.leaders[p.Partition] = p.Leader
			}
		}
		infos[name] = info
	}
	return infos, nil
}
