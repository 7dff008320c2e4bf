package cluster

import (
	"context"
	"fmt"
	"sync"

	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topics keeps the coordinator informed of which topics exist. Topics change only by requests that pass the front
// (kfake creates none by itself here), so reading them again after those is enough.
type topics struct {
	broker *broker
	post   func(coordinator.Event)

	mu    sync.Mutex // held over reading and reporting, so that reports keep the order of the reads
	known map[string]topic
}

type topic struct {
	id         [16]byte
	partitions int32
}

func newTopics(b *broker, post func(coordinator.Event)) *topics {
	return &topics{broker: b, post: post, known: map[string]topic{}}
}

// refresh reads the topics and reports what has changed.
func (t *topics) refresh(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	resp, err := t.broker.metadata(ctx)
	if err != nil {
		return err
	}
	now := existing(resp)
	for name, old := range t.known {
		// A topic that was deleted and created again between two reads is another topic: its offsets are gone.
		if current, ok := now[name]; !ok || current.id != old.id {
			t.post(coordinator.TopicDeleted{Topic: name})
			delete(t.known, name)
		}
	}
	for name, current := range now {
		if t.known[name] != current {
			t.post(coordinator.TopicChanged{Topic: name, ID: current.id, Partitions: current.partitions})
		}
	}
	t.known = now
	return nil
}

// partitions is how many partitions a topic has, 0 if there is no such topic.
func (t *topics) partitions(name string) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[name].partitions
}

// topicID returns the id of an existing topic.
func (b *broker) topicID(ctx context.Context, name string) ([16]byte, error) {
	resp, err := b.metadata(ctx)
	if err != nil {
		return [16]byte{}, err
	}
	t, ok := existing(resp)[name]
	if !ok {
		return [16]byte{}, fmt.Errorf("cluster: topic %s was created and is not there", name)
	}
	return t.id, nil
}

func existing(resp *kmsg.MetadataResponse) map[string]topic {
	found := make(map[string]topic, len(resp.Topics))
	for _, t := range resp.Topics {
		if t.ErrorCode == 0 && t.Topic != nil {
			found[*t.Topic] = topic{t.TopicID, int32(len(t.Partitions))}
		}
	}
	return found
}
