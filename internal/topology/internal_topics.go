package topology

import (
	"strconv"

	"github.com/millrace-io/millrace/statestore"
)

// InternalTopic is a topic that the application owns and must create.
type InternalTopic struct {
	Name       string
	Partitions int32
	// Config holds Kafka Streams' settings for a topic of this kind.
	Config map[string]string
	// Changelog says that it is a changelog; otherwise it is a repartition topic.
	Changelog bool
}

// windowStoreExtraRetention is Kafka's windowstore.changelog.additional.retention.ms: a changelog keeps windows for
// longer than the store, so that a broker's clock that runs ahead does not delete what a restore still needs.
const windowStoreExtraRetention = 86400000

// InternalTopics returns the repartition and changelog topics with their partition counts and configurations.
func (p *Plan) InternalTopics(partitions func(topic string) (int32, bool)) ([]InternalTopic, error) {
	l, err := p.Resolve(partitions)
	if err != nil {
		return nil, err
	}
	return l.InternalTopics(), nil
}

// InternalTopics returns the repartition and changelog topics.
func (l *Layout) InternalTopics() []InternalTopic {
	var topics []InternalTopic
	for i := range l.plan.Subtopologies {
		sub := &l.plan.Subtopologies[i]
		for _, s := range sub.Sources {
			if s.Internal {
				topics = append(topics, InternalTopic{Name: s.Topic, Partitions: l.counts[s.Topic], Config: repartitionConfig()})
			}
		}
		for _, store := range sub.Stores {
			if store.Logged {
				topics = append(topics, InternalTopic{
					Name: store.Changelog, Partitions: l.tasks(sub), Config: changelogConfig(store.Spec), Changelog: true,
				})
			}
		}
	}
	return topics
}

func repartitionConfig() map[string]string {
	return map[string]string{
		"cleanup.policy":         "delete",
		"message.timestamp.type": "CreateTime",
		"retention.ms":           "-1",
		"segment.bytes":          "52428800",
	}
}

func changelogConfig(s statestore.Spec) map[string]string {
	config := map[string]string{"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
	if s.Kind == statestore.Window {
		config["cleanup.policy"] = "compact,delete"
		config["retention.ms"] = strconv.FormatInt(s.Retention+windowStoreExtraRetention, 10)
	}
	return config
}
