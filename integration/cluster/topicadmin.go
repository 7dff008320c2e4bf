package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// maxPartitions is how many partitions one request may ask for, as in Kafka's controller. kfake would make any number,
	// and a mistyped one would be the end of the process.
	maxPartitions = 10_000

	// maxMetadata is how many records one request may be in the metadata log: one a topic, partition and config. It keeps a
	// request from making one topic of 10,000 partitions.
	maxMetadata = 10_000

	maxTopicName = 249
)

// A refusal is the error that one part of a request is answered with.
type refusal struct {
	code    int16
	message string
}

func refuse(why *kerr.Error, format string, args ...any) *refusal {
	return &refusal{why.Code, fmt.Sprintf(format, args...)}
}

// createTopics answers the topics of a request that Kafka would refuse, and has kfake create the others. kfake creates
// any name, as a directory, with any replicas and configs. It returns nil if there is nothing to refuse.
func (f *front) createTopics(req *kmsg.CreateTopicsRequest) (kmsg.Response, error) {
	why := f.tooMuch(req)
	names := map[string]int{}
	for _, t := range req.Topics {
		names[t.Topic]++
	}
	refused := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	var rest []kmsg.CreateTopicsRequestTopic
	for _, t := range req.Topics {
		reason := why
		switch {
		case reason != nil:
		case names[t.Topic] > 1:
			reason = refuse(kerr.InvalidRequest, "Duplicate topic name.")
		case names[t.Topic] < 1:
			continue // has been answered
		default:
			reason = f.refuseTopic(t)
		}
		if reason == nil {
			rest = append(rest, t)
			continue
		}
		names[t.Topic] = 0
		rt := kmsg.NewCreateTopicsResponseTopic()
		rt.Topic, rt.ErrorCode, rt.ErrorMessage = t.Topic, reason.code, &reason.message
		refused.Topics = append(refused.Topics, rt)
	}
	if len(refused.Topics) == 0 || len(rest) == 0 {
		return unless(len(refused.Topics) == 0, refused), nil
	}
	req.Topics = rest
	resp, err := req.RequestWith(context.Background(), f.broker.client)
	if err != nil {
		return nil, fmt.Errorf("create the other topics of a request: %w", err)
	}
	f.readTopics()
	refused.Topics = append(resp.Topics, refused.Topics...)
	return refused, nil
}

// unless is resp, or no response at all: a nil pointer is not a nil interface.
func unless(none bool, resp kmsg.Response) kmsg.Response {
	if none {
		return nil
	}
	return resp
}

// tooMuch reports whether a request asks for more than Kafka makes of one.
func (f *front) tooMuch(req *kmsg.CreateTopicsRequest) *refusal {
	partitions, metadata := int64(0), int64(0)
	for _, t := range req.Topics {
		n := max(int64(t.NumPartitions), 0)
		switch {
		case len(t.ReplicaAssignment) > 0:
			n = int64(len(t.ReplicaAssignment))
		case t.NumPartitions == -1:
			n = int64(f.defaultPartitions)
		}
		partitions += n
		metadata += 1 + n + int64(len(t.Configs))
	}
	switch {
	case partitions > maxPartitions:
		return refuse(kerr.PolicyViolation, "Excessively large number of partitions per request.")
	case metadata > maxMetadata:
		return refuse(kerr.PolicyViolation, "Unable to perform excessively large batch operation.")
	}
	return nil
}

func (f *front) refuseTopic(t kmsg.CreateTopicsRequestTopic) *refusal {
	if why := refuseTopicName(t.Topic); why != nil {
		return why
	}
	assigned := len(t.ReplicaAssignment) > 0
	switch {
	case t.Topic == "__cluster_metadata":
		return refuse(kerr.InvalidRequest, "Creation of internal topic %s is prohibited.", t.Topic)
	case !assigned && (t.NumPartitions == 0 || t.NumPartitions < -1):
		return refuse(kerr.InvalidPartitions, "Number of partitions was set to an invalid non-positive value.")
	case !assigned && (t.ReplicationFactor == 0 || t.ReplicationFactor < -1):
		return refuse(kerr.InvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value.")
	}
	for _, a := range t.ReplicaAssignment {
		if len(a.Replicas) != 1 || a.Replicas[0] != f.versions.node {
			return f.refuseReplicas(a.Replicas)
		}
	}
	for _, c := range t.Configs {
		if c.Value == nil {
			return refuse(kerr.InvalidConfig, "Null value not supported for topic configs: %s", c.Name)
		}
		if why := refuseTopicConfig(c.Name, *c.Value); why != nil {
			return why
		}
	}
	return nil
}

func (f *front) refuseReplicas(replicas []int32) *refusal {
	return refuse(kerr.InvalidReplicaAssignment, "Replicas %v: the only broker is %d.", replicas, f.versions.node)
}

func refuseTopicName(name string) *refusal {
	if why := topicNameFault(name); why != "" {
		return &refusal{kerr.InvalidTopicException.Code, why}
	}
	return nil
}

// topicNameFault says what is wrong with the name of a topic, or "", in Kafka's words.
func topicNameFault(name string) string {
	switch {
	case name == "":
		return "Topic name is invalid: the empty string is not allowed"
	case name == "." || name == "..":
		return fmt.Sprintf("Topic name is invalid: '%s' is not allowed", name)
	case len(name) > maxTopicName:
		return fmt.Sprintf("Topic name is invalid: the length of '%.300s' is longer than the max allowed length %d", name, maxTopicName)
	case strings.ContainsFunc(name, func(r rune) bool { return !topicRune(r) }):
		return fmt.Sprintf("Topic name is invalid: '%s' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'", name)
	}
	return ""
}

func topicRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

// createPartitions does for CreatePartitions what createTopics does.
func (f *front) createPartitions(req *kmsg.CreatePartitionsRequest) (kmsg.Response, error) {
	added := int64(0)
	for _, t := range req.Topics {
		if now := f.topics.partitions(t.Topic); now > 0 {
			added += max(int64(t.Count)-int64(now), 0)
		}
	}
	refused := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
	var rest []kmsg.CreatePartitionsRequestTopic
	for _, t := range req.Topics {
		why := f.refuseGrowth(t)
		if added > maxPartitions {
			why = refuse(kerr.PolicyViolation, "Excessively large number of additional partitions per request.")
		}
		if why == nil {
			rest = append(rest, t)
			continue
		}
		rt := kmsg.NewCreatePartitionsResponseTopic()
		rt.Topic, rt.ErrorCode, rt.ErrorMessage = t.Topic, why.code, &why.message
		refused.Topics = append(refused.Topics, rt)
	}
	if len(refused.Topics) == 0 || len(rest) == 0 {
		return unless(len(refused.Topics) == 0, refused), nil
	}
	req.Topics = rest
	resp, err := req.RequestWith(context.Background(), f.broker.client)
	if err != nil {
		return nil, fmt.Errorf("create the other partitions of a request: %w", err)
	}
	f.readTopics()
	refused.Topics = append(resp.Topics, refused.Topics...)
	return refused, nil
}

func (f *front) refuseGrowth(t kmsg.CreatePartitionsRequestTopic) *refusal {
	now := f.topics.partitions(t.Topic)
	switch {
	case t.Topic == offsetsTopic:
		return refuse(kerr.TopicAuthorizationFailed, "The topic is the coordinator's.")
	case now == 0: // also of one whose creator has no answer yet: kfake knows it, and it could grow by any number
		return refuse(kerr.UnknownTopicOrPartition, "This server does not host this topic-partition.")
	case t.Count == now:
		return refuse(kerr.InvalidPartitions, "Topic already has %d partition(s).", now)
	case t.Count < now:
		return refuse(kerr.InvalidPartitions, "The topic %s currently has %d partition(s); %d would not be an increase.", t.Topic, now, t.Count)
	}
	for _, a := range t.Assignment {
		if len(a.Replicas) != 1 || a.Replicas[0] != f.versions.node {
			return f.refuseReplicas(a.Replicas)
		}
	}
	return nil
}
