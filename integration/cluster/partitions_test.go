package cluster

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestNumbersOfPartitionsAreBounded: a number that kfake would try to serve until the memory is gone is refused, in all
// versions; an ordinary one is served.
func TestNumbersOfPartitionsAreBounded(t *testing.T) {
	c, err := Start(Topic("lines", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	create := func(version int16, topics map[string]int32) map[string]int16 {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version, req.TimeoutMillis = version, 10_000
		for name, n := range topics {
			rt := kmsg.NewCreateTopicsRequestTopic()
			rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, n, 1
			req.Topics = append(req.Topics, rt)
		}
		codes := map[string]int16{}
		for _, topic := range exchange(t, c, req).(*kmsg.CreateTopicsResponse).Topics {
			codes[topic.Topic] = topic.ErrorCode
		}
		return codes
	}
	refused := kerr.PolicyViolation.Code
	for version := int16(2); version <= maxCreateTopics; version++ {
		if codes := create(version, map[string]int32{"huge": 1<<31 - 1}); codes["huge"] != refused {
			t.Errorf("version %d, 2^31-1 partitions: %v", version, codes)
		}
		if codes := create(version, map[string]int32{"a": 6_000, "b": 6_000}); codes["a"] != refused || codes["b"] != refused {
			t.Errorf("version %d, twice 6000 partitions: %v", version, codes)
		}
	}
	if codes := create(maxCreateTopics, map[string]int32{"broad": 200}); codes["broad"] != 0 {
		t.Errorf("200 partitions: %v", codes)
	}
	for version := range int16(4) {
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.Version = version
		rt := kmsg.NewCreatePartitionsRequestTopic()
		rt.Topic, rt.Count = "lines", 1<<30
		req.Topics = append(req.Topics, rt)
		if code := exchange(t, c, req).(*kmsg.CreatePartitionsResponse).Topics[0].ErrorCode; code != refused {
			t.Errorf("version %d, CreatePartitions to 2^30: %d", version, code)
		}
	}
}
