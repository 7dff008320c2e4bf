package cluster

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A bound is a request at the edge of what is allowed, with the codes that Kafka 4.4 answers.
type bound struct {
	name string
	req  kmsg.Request
	want []*kerr.Error // nil is success
}

// TestRequestsAtTheirBounds: the embedded cluster answers as Kafka does. With KAFKA_BOOTSTRAP the same is asked of a real
// broker, so that what is wanted here is what that does.
func TestRequestsAtTheirBounds(t *testing.T) {
	c, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	brokers := map[string]string{"embedded": c.Brokers()[0]}
	if addr := os.Getenv("KAFKA_BOOTSTRAP"); addr != "" {
		brokers["kafka"] = addr
	}
	for name, addr := range brokers {
		t.Run(name, func(t *testing.T) {
			meta := ask(t, addr, &kmsg.MetadataRequest{Version: 9}).(*kmsg.MetadataResponse)
			topic := fmt.Sprintf("bounds-%d", os.Getpid())
			create := createRequest(newTopic(topic, 2, 1))
			create.ValidateOnly = false
			if got := codes(ask(t, addr, create)); got[0] != 0 {
				t.Fatal(kerr.ErrorForCode(got[0]))
			}
			for _, b := range slices.Concat(createBounds(meta.Brokers[0].NodeID), growthBounds(topic), configBounds(topic), otherBounds(topic), produceBounds(topic)) {
				var want []int16
				for _, why := range b.want {
					if why == nil {
						why = &kerr.Error{}
					}
					want = append(want, why.Code)
				}
				got := codes(ask(t, addr, b.req))
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("%s: codes %v, want %v", b.name, got, want)
				}
			}
		})
	}
}

func newTopic(name string, partitions int32, replicas int16) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, replicas
	return t
}

// assigned is a topic with the replicas of each partition.
func assigned(replicas ...[]int32) kmsg.CreateTopicsRequestTopic {
	t := newTopic("assigned", -1, -1)
	for i, r := range replicas {
		t.ReplicaAssignment = append(t.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: int32(i), Replicas: r})
	}
	return t
}

func configured(name string, value *string) kmsg.CreateTopicsRequestTopic {
	t := newTopic("configured", 1, 1)
	t.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: name, Value: value}}
	return t
}

func createRequest(topics ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis, req.Topics, req.ValidateOnly = maxCreateTopics, 10_000, topics, true
	return req
}

func createBounds(node int32) (all []bound) {
	add := func(name string, want []*kerr.Error, topics ...kmsg.CreateTopicsRequestTopic) {
		all = append(all, bound{"create " + name, createRequest(topics...), want})
	}
	one := func(why *kerr.Error) []*kerr.Error { return []*kerr.Error{why} }
	for name, why := range map[string]*kerr.Error{
		"": kerr.InvalidTopicException, ".": kerr.InvalidTopicException, "..": kerr.InvalidTopicException, "a/b": kerr.InvalidTopicException,
		"a\x00b": kerr.InvalidTopicException, "a b": kerr.InvalidTopicException, strings.Repeat("n", 249): nil,
		strings.Repeat("n", 250): kerr.InvalidTopicException, "__cluster_metadata": kerr.InvalidRequest,
	} {
		add(fmt.Sprintf("name %.20q", name), one(why), newTopic(name, 1, 1))
	}
	for n, why := range map[int32]*kerr.Error{
		1: nil, -1: nil, 9_999: nil, 10_000: kerr.PolicyViolation, 10_001: kerr.PolicyViolation, math.MaxInt32: kerr.PolicyViolation,
		0: kerr.InvalidPartitions, -2: kerr.InvalidPartitions, math.MinInt32: kerr.InvalidPartitions,
	} {
		add(fmt.Sprint("partitions ", n), one(why), newTopic("parted", n, 1))
	}
	for n, why := range map[int16]*kerr.Error{
		-1: nil, 0: kerr.InvalidReplicationFactor, -2: kerr.InvalidReplicationFactor, 2: kerr.InvalidReplicationFactor,
	} {
		add(fmt.Sprint("replicas ", n), one(why), newTopic("replicated", 1, n))
	}
	policy := kerr.PolicyViolation
	add("5,000 and 5,001", []*kerr.Error{policy, policy}, newTopic("a", 5_000, 1), newTopic("b", 5_001, 1))
	add("9,999 and a config", one(policy), func() kmsg.CreateTopicsRequestTopic {
		t := configured("retention.ms", kmsg.StringPtr("1"))
		t.NumPartitions = 9_999
		return t
	}())
	add("a name twice", []*kerr.Error{kerr.InvalidRequest, nil}, newTopic("twice", 1, 1), newTopic("twice", 2, 1), newTopic("once", 1, 1))
	add("one bad of two", []*kerr.Error{nil, kerr.InvalidPartitions}, newTopic("good", 1, 1), newTopic("bad", 0, 1))
	add("assigned to the broker", one(nil), assigned([]int32{node}))
	add("assigned to nobody", one(kerr.InvalidReplicaAssignment), assigned([]int32{}))
	add("assigned twice", one(kerr.InvalidReplicaAssignment), assigned([]int32{node, node}))
	add("assigned to another", one(kerr.InvalidReplicaAssignment), assigned([]int32{node + 76}))
	for name, value := range map[string]string{
		"no.such.config": "1", "retention.ms": "soon", "segment.bytes": "14", "cleanup.policy": "shred", "compression.type": "brotli",
		"preallocate": "maybe", "min.cleanable.dirty.ratio": "1.5", "kfake.is_internal": "true", "max.message.bytes": "-1", "segment.ms": "0",
	} {
		add("config "+name, one(kerr.InvalidConfig), configured(name, &value))
	}
	for name, value := range map[string]string{
		"retention.ms": "-1", "retention.bytes": "-7", "cleanup.policy": "compact,delete", "compression.type": "producer", "preallocate": "TRUE",
	} {
		add("config "+name, one(nil), configured(name, &value))
	}
	add("config without value", one(kerr.InvalidConfig), configured("retention.ms", nil))
	return all
}

func growthBounds(topic string) (all []bound) {
	for n, why := range map[int32]*kerr.Error{
		3: nil, 2: kerr.InvalidPartitions, 1: kerr.InvalidPartitions, 0: kerr.InvalidPartitions, -5: kerr.InvalidPartitions,
		10_002: nil, 10_003: kerr.PolicyViolation, math.MaxInt32: kerr.PolicyViolation,
	} {
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.Version, req.TimeoutMillis, req.ValidateOnly = 3, 10_000, true
		req.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: topic, Count: n}}
		all = append(all, bound{fmt.Sprint("partitions from 2 to ", n), req, []*kerr.Error{why}})
	}
	return all
}

func configBounds(topic string) (all []bound) {
	set, add, remove := kmsg.IncrementalAlterConfigOpSet, kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpDelete
	for _, tc := range []struct {
		resource, config string
		op               kmsg.IncrementalAlterConfigOp
		value            *string
		want             *kerr.Error
	}{
		{topic, "retention.ms", set, kmsg.StringPtr("1000"), nil},
		{topic, "retention.ms", set, kmsg.StringPtr("x"), kerr.InvalidConfig},
		{topic, "retention.ms", set, nil, kerr.InvalidRequest},
		{topic, "retention.ms", add, kmsg.StringPtr("1"), kerr.InvalidConfig},
		{topic, "retention.ms", remove, nil, nil},
		{topic, "no.such", set, kmsg.StringPtr("1"), kerr.InvalidConfig},
		{topic, "no.such", remove, nil, nil},
		{topic, "cleanup.policy", add, kmsg.StringPtr("compact"), nil},
		{topic, "cleanup.policy", add, kmsg.StringPtr("shred"), kerr.InvalidConfig},
		{"no-such-topic", "retention.ms", set, kmsg.StringPtr("1"), kerr.UnknownTopicOrPartition},
		{"a/b", "retention.ms", set, kmsg.StringPtr("1"), kerr.InvalidTopicException},
		{"", "retention.ms", set, kmsg.StringPtr("1"), kerr.InvalidRequest},
	} {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.Version, req.ValidateOnly = 1, true
		req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{
			ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: tc.resource,
			Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: tc.config, Op: tc.op, Value: tc.value}},
		}}
		all = append(all, bound{fmt.Sprintf("%q: op %v on %s", tc.resource, tc.op, tc.config), req, []*kerr.Error{tc.want}})
	}
	return all
}

func otherBounds(topic string) (all []bound) {
	for name, tc := range map[string]struct {
		kind       int8
		partitions []int32
		want       []*kerr.Error
	}{
		"a leader that is there": {0, []int32{0, 1}, []*kerr.Error{kerr.ElectionNotNeeded, kerr.ElectionNotNeeded}},
		"unclean":                {1, []int32{0}, []*kerr.Error{kerr.ElectionNotNeeded}},
		"no such partition":      {0, []int32{0, 9}, []*kerr.Error{kerr.ElectionNotNeeded, kerr.UnknownTopicOrPartition}},
		"no such type":           {7, []int32{0}, []*kerr.Error{kerr.InvalidRequest}},
	} {
		req := kmsg.NewPtrElectLeadersRequest()
		req.Version, req.ElectionType, req.TimeoutMillis = 2, tc.kind, 10_000
		req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: topic, Partitions: tc.partitions}}
		all = append(all, bound{"election, " + name, req, tc.want})
	}
	disabled := []*kerr.Error{kerr.SecurityDisabled}
	describe := &kmsg.DescribeACLsRequest{Version: 3, ResourceType: 1, ResourcePatternType: 1, Operation: 1, PermissionType: 1}
	create := &kmsg.CreateACLsRequest{Version: 3, Creations: []kmsg.CreateACLsRequestCreation{
		{ResourceType: 2, ResourceName: topic, ResourcePatternType: 3, Principal: "User:a", Host: "*", Operation: 3, PermissionType: 3}}}
	remove := &kmsg.DeleteACLsRequest{Version: 3, Filters: []kmsg.DeleteACLsRequestFilter{
		{ResourceType: 1, ResourcePatternType: 1, Operation: 1, PermissionType: 1}}}
	return append(all,
		bound{"describe ACLs", describe, disabled}, bound{"create ACLs", create, disabled}, bound{"delete ACLs", remove, disabled},
		bound{"SASL handshake", &kmsg.SASLHandshakeRequest{Version: 1, Mechanism: "PLAIN"}, []*kerr.Error{kerr.IllegalSaslState}},
		bound{"SASL authenticate", &kmsg.SASLAuthenticateRequest{Version: 2}, []*kerr.Error{kerr.IllegalSaslState}},
	)
}

func produceBounds(topic string) (all []bound) {
	good := testRecord(0)
	damaged := testBatch(0, 1, good)
	damaged[len(damaged)-1] ^= 1
	old := testBatch(0, 1, good)
	old[batchMagicAt] = 1
	for name, tc := range map[string]struct {
		records []byte
		want    *kerr.Error
	}{
		"good":                   {testBatch(0, 1, good), nil},
		"of the time of append":  {testBatch(attributeAppendTime, 1, good), nil},
		"packed":                 {testBatch(1, 1, packers[1](good)), nil},
		"no record":              {testBatch(0, 0, nil), kerr.InvalidRecord},
		"a record, counted none": {testBatch(0, 0, good), kerr.InvalidRecord},
		"a record, counted two":  {testBatch(0, 2, good), kerr.InvalidRecord},
		"two, counted one":       {testBatch(0, 1, slices.Concat(good, good)), kerr.InvalidRecord},
		"negative count":         {testBatch(0, -5, good), kerr.InvalidRecord},
		"length too long":        {testBatch(0, 1, testRecord(50)), kerr.InvalidRecord},
		"length too short":       {testBatch(0, 1, testRecord(-3)), kerr.InvalidRecord},
		"length negative":        {testBatch(0, 1, testRecord(-200)), kerr.InvalidRecord},
		"a control batch":        {testBatch(attributeControl, 1, good), kerr.InvalidRecord},
		"wrong checksum":         {damaged, kerr.CorruptMessage},
		"old format":             {old, kerr.InvalidRecord},
		"nothing":                {[]byte{}, kerr.InvalidRecord},
		"two batches":            {slices.Concat(testBatch(0, 1, good), testBatch(0, 1, good)), kerr.InvalidRecord},
		"cut":                    {testBatch(0, 1, good)[:50], kerr.InvalidRecord},
		"transactional, no id":   {testBatch(attributeTransactional, 1, good), kerr.TransactionalIDAuthorizationFailed},
	} {
		req := produceRequest(maxProduce, nil, topic)
		req.Topics[0].Partitions[0].Records = tc.records
		all = append(all, bound{"produce, " + name, req, []*kerr.Error{tc.want}})
	}
	return all
}

// codes are those of the parts of a response.
func codes(resp kmsg.Response) (all []int16) {
	switch resp := resp.(type) {
	case *kmsg.CreateTopicsResponse:
		for _, t := range resp.Topics {
			all = append(all, t.ErrorCode)
		}
	case *kmsg.ProduceResponse:
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				all = append(all, p.ErrorCode)
			}
		}
	case *kmsg.CreatePartitionsResponse:
		for _, t := range resp.Topics {
			all = append(all, t.ErrorCode)
		}
	case *kmsg.IncrementalAlterConfigsResponse:
		for _, r := range resp.Resources {
			all = append(all, r.ErrorCode)
		}
	case *kmsg.ElectLeadersResponse:
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				all = append(all, p.ErrorCode)
			}
		}
	case *kmsg.DescribeACLsResponse:
		all = append(all, resp.ErrorCode)
	case *kmsg.CreateACLsResponse:
		for _, r := range resp.Results {
			all = append(all, r.ErrorCode)
		}
	case *kmsg.DeleteACLsResponse:
		for _, r := range resp.Results {
			all = append(all, r.ErrorCode)
		}
	case *kmsg.SASLHandshakeResponse:
		all = append(all, resp.ErrorCode)
	case *kmsg.SASLAuthenticateResponse:
		all = append(all, resp.ErrorCode)
	}
	return all
}
