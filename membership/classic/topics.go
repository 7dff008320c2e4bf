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

// topicIDs looks up the ids of the topics in offsets, mostly from the client's cache. A broker that knows no topic
// ids gives zeros and speaks no version that needs them.
func (d *Driver) topicIDs(ctx context.Context, offsets []Offset) (topicIDs, error) {
	req := kmsg.NewPtrMetadataRequest()
	ids := topicIDs{}
	for _, o := range offsets {
		if _, seen := ids[o.Topic]; seen {
			continue
		}
		ids[o.Topic] = [16]byte{}
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(o.Topic)
		req.Topics = append(req.Topics, t)
	}
	resp, err := d.client.RequestCachedMetadata(ctx, req, idAge)
	if err != nil {
		return nil, fmt.Errorf("group %q: look up topics to commit: %w", d.cfg.Group, err)
	}
	for _, t := range resp.Topics {
		if t.Topic == nil {
			continue
		}
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return nil, fmt.Errorf("group %q: look up topic %q to commit: %w", d.cfg.Group, *t.Topic, err)
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
