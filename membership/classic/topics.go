package classic

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicIDs maps names to ids. The newest commit requests name topics by id only.
type topicIDs map[string][16]byte

// idAge is how old an id in the client's metadata cache may be. A topic that is deleted and made again gets another
// id; the coordinator refuses the old one, and the member's fetches fail at the same time.
const idAge = time.Minute

// topicPatience is how long a topic may be unknown before that is an error: brokers learn of a new topic one after
// the other.
const topicPatience = 5 * time.Second

// topicIDs looks up the ids of topics, mostly from the client's cache. A broker that knows no topic ids gives zeros
// and speaks no version that needs them.
func (d *Driver) topicIDs(ctx context.Context, topics []string) (topicIDs, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, topic := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(topic)
		req.Topics = append(req.Topics, t)
	}
	ids, err := readTopicIDs(d.client.RequestCachedMetadata(ctx, req, idAge))
	for begin, pause := time.Now(), minUnstablePause; kerr.IsRetriable(err) && time.Since(begin) < topicPatience; pause *= 2 {
		if wait(ctx, pause) != nil {
			break
		}
		ids, err = readTopicIDs(req.RequestWith(ctx, d.client))
	}
	if err != nil {
		return nil, fmt.Errorf("group %q: look up topics: %w", d.cfg.Group, err)
	}
	return ids, nil
}

func readTopicIDs(resp *kmsg.MetadataResponse, err error) (topicIDs, error) {
	if err != nil {
		return nil, err
	}
	ids := topicIDs{}
	for _, t := range resp.Topics {
		if t.Topic == nil {
			continue
		}
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return nil, fmt.Errorf("topic %q: %w", *t.Topic, err)
		}
		ids[*t.Topic] = t.TopicID
	}
	return ids, nil
}

// nameOf returns the topic's name in an answer that may name it by id only.
func nameOf(name string, id [16]byte, ids topicIDs) string {
	if name != "" {
		return name
	}
	for topic, known := range ids {
		if known == id {
			return topic
		}
	}
	return fmt.Sprintf("topic id %x", id)
}
