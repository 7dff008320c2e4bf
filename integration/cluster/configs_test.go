package cluster

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestTopicsAreCreatedByKafkasRules: a name or config that a broker would refuse is refused, with its words.
func TestTopicsAreCreatedByKafkasRules(t *testing.T) {
	c, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, tc := range []struct {
		name, config, value string
		code                int16
		words               string
	}{
		{"good", "retention.ms", "60000", 0, ""},
		{"unusual_but.Good-1", "flush.ms", "1", 0, ""},
		{"both", "cleanup.policy", "compact, delete", 0, ""},
		{"bad name!", "retention.ms", "1", kerr.InvalidTopicException.Code, "'bad name!' contains"},
		{"../../outside", "retention.ms", "1", kerr.InvalidTopicException.Code, "contains"},
		{"..", "retention.ms", "1", kerr.InvalidTopicException.Code, "'..' is not allowed"},
		{"", "retention.ms", "1", kerr.InvalidTopicException.Code, "empty"},
		{strings.Repeat("x", 250), "retention.ms", "1", kerr.InvalidTopicException.Code, "249"},
		{"a", "retention.msec", "1", kerr.InvalidConfig.Code, "Unknown topic config name: retention.msec"},
		{"a", "kfake.is_internal", "true", kerr.InvalidConfig.Code, "Unknown"},
		{"a", "retention.ms", "soon", kerr.InvalidConfig.Code, "Invalid value soon for configuration retention.ms"},
		{"a", "cleanup.policy", "compact,shred", kerr.InvalidConfig.Code, "Invalid value"},
		{"a", "min.cleanable.dirty.ratio", "1.5", kerr.InvalidConfig.Code, "Invalid value"},
	} {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = tc.name, 1, 1
		topic.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: tc.config, Value: &tc.value}}
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version, req.TimeoutMillis = maxCreateTopics, 10_000
		req.Topics = append(req.Topics, topic)
		got := exchange(t, c, req).(*kmsg.CreateTopicsResponse).Topics[0]
		if got.ErrorCode != tc.code || !strings.Contains(said(got.ErrorMessage), tc.words) {
			t.Errorf("create %.20q with %s=%s: code %d, %v; want code %d and %q", tc.name, tc.config, tc.value, got.ErrorCode, said(got.ErrorMessage), tc.code, tc.words)
		}
	}
}

// TestConfigsThatAreNotChanged: those of the broker, of the coordinator's topic, and unknown ones. What stands beside them
// in a request is changed.
func TestConfigsThatAreNotChanged(t *testing.T) {
	c, err := Start(Topic("lines", 1), Topic("beside", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, tc := range []struct {
		kind                kmsg.ConfigResourceType
		name, config, value string
		code                int16
	}{
		{kmsg.ConfigResourceTypeBroker, "", "log.cleaner.backoff.ms", "10", kerr.InvalidRequest.Code},
		{kmsg.ConfigResourceTypeTopic, offsetsTopic, "retention.ms", "10", kerr.TopicAuthorizationFailed.Code},
		{kmsg.ConfigResourceTypeTopic, "lines", "retention.msec", "10", kerr.InvalidConfig.Code},
		{kmsg.ConfigResourceTypeTopic, "lines", "segment.bytes", "2000000", 0},
	} {
		incremental := kmsg.NewPtrIncrementalAlterConfigsRequest()
		incremental.Resources = []kmsg.IncrementalAlterConfigsRequestResource{
			{ResourceType: tc.kind, ResourceName: tc.name,
				Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: tc.config, Value: &tc.value}}},
			{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "beside",
				Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: &tc.value}}},
		}
		got := exchange(t, c, incremental).(*kmsg.IncrementalAlterConfigsResponse).Resources
		if code(got, tc.name) != tc.code || code(got, "beside") != 0 {
			t.Errorf("%s of %q: %+v, want code %d, and 0 for the other", tc.config, tc.name, got, tc.code)
		}
		whole := kmsg.NewPtrAlterConfigsRequest()
		whole.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: tc.kind, ResourceName: tc.name,
			Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: tc.config, Value: &tc.value}}}}
		if code := exchange(t, c, whole).(*kmsg.AlterConfigsResponse).Resources[0].ErrorCode; code != tc.code {
			t.Errorf("AlterConfigs with %s of %q: code %d, want %d", tc.config, tc.name, code, tc.code)
		}
	}
	if lines, beside := describe(t, c, "lines"), describe(t, c, "beside"); lines["segment.bytes"] != "2000000" || beside["retention.ms"] != "2000000" {
		t.Errorf("after all this: %v and %v", lines, beside)
	}
}

// code is what a resource was answered with.
func code(answered []kmsg.IncrementalAlterConfigsResponseResource, name string) int16 {
	for _, r := range answered {
		if r.ResourceName == name {
			return r.ErrorCode
		}
	}
	return -1
}

// TestTopicConfigsAreATopics: what DescribeConfigs shows of a topic is a topic's, and the retention that there is.
func TestTopicConfigsAreATopics(t *testing.T) {
	c, err := Start(Topic("lines", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, topic := range []string{"lines", offsetsTopic} {
		got := describe(t, c, topic)
		for name := range got {
			if _, ok := topicConfigs[name]; !ok {
				t.Errorf("%s has %s", topic, name)
			}
		}
		if got["retention.ms"] != "-1" || got["cleanup.policy"] == "" {
			t.Errorf("%s: %v", topic, got)
		}
	}
}

// describe returns the configs of a topic.
func describe(t *testing.T, c *Cluster, topic string) map[string]string {
	t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version = 4
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topic}}
	found := map[string]string{}
	for _, config := range exchange(t, c, req).(*kmsg.DescribeConfigsResponse).Resources[0].Configs {
		found[config.Name] = *config.Value
	}
	return found
}

// TestShrinkingIsRefusedInWords: a topic cannot lose partitions, and the answer says how many it has.
func TestShrinkingIsRefusedInWords(t *testing.T) {
	c, err := Start(Topic("lines", 5))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, tc := range []struct {
		count int32
		want  string
	}{
		{2, "currently has 5 partition(s); 2 would not be an increase"},
		{5, "already has 5"},
		{6, ""},
	} {
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.Version = 3
		rt := kmsg.NewCreatePartitionsRequestTopic()
		rt.Topic, rt.Count = "lines", tc.count
		req.Topics = append(req.Topics, rt)
		got := exchange(t, c, req).(*kmsg.CreatePartitionsResponse).Topics[0]
		if (got.ErrorCode == 0) != (tc.want == "") || !strings.Contains(said(got.ErrorMessage), tc.want) {
			t.Errorf("to %d partitions: code %d, %v", tc.count, got.ErrorCode, said(got.ErrorMessage))
		}
	}
}

func said(message *string) string {
	if message == nil {
		return ""
	}
	return *message
}
