package metadata

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/membership/codec"
	"github.com/millrace-io/millrace/statestore"
)

// admin returns a fake cluster of one broker and an admin client of it.
func admin(t *testing.T, opts ...kfake.Opt) (*kfake.Cluster, *kadm.Client) {
	t.Helper()
	cluster, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return cluster, kadm.NewClient(client)
}

// answerDescribe makes the cluster answer DescribeGroups with one group.
func answerDescribe(cluster *kfake.Cluster, group kmsg.DescribeGroupsResponseGroup) {
	cluster.ControlKey(kmsg.DescribeGroups.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
		resp.Groups = []kmsg.DescribeGroupsResponseGroup{group}
		return resp, nil, true
	})
}

func member(process, instance string, active ...string) kmsg.DescribeGroupsResponseGroupMember {
	var sources []codec.TopicPartition
	for _, id := range tasks(active...) {
		sources = append(sources, codec.TopicPartition{Topic: "lines", Partition: id.Partition})
	}
	m := kmsg.NewDescribeGroupsResponseGroupMember()
	m.MemberID, m.ClientID, m.ClientHost, m.InstanceID = "m-"+instance, instance, "/10.0.0.9", &instance
	m.ProtocolMetadata = codec.EncodeMember([]string{"lines"}, nil, &codec.Subscription{
		ProcessID: "p-" + process, ClientID: "wc-" + process, Endpoint: "host-" + process + ":80", Generation: codec.NoGeneration})
	m.MemberAssignment = codec.EncodeGrant(sources, &codec.Assignment{Generation: 5, Active: tasks(active...), Standby: tasks("counts_9")})
	return m
}

func wordCountPlan() *topology.Plan {
	return &topology.Plan{AppID: "wordcount", Subtopologies: []topology.Subtopology{{
		ID:      "counts",
		Sources: []topology.SourceTopic{{Topic: "wordcount-counts-repartition", Internal: true}},
		Stores:  []topology.StoreSpec{{Spec: statestore.Spec{Name: "counts"}}},
	}}}
}

func TestDescribeGroupsMembersByProcess(t *testing.T) {
	cluster, adm := admin(t)
	group := kmsg.NewDescribeGroupsResponseGroup()
	group.Group, group.State, group.ProtocolType = "wordcount", "Stable", "consumer"
	foreign := kmsg.NewDescribeGroupsResponseGroupMember()
	foreign.MemberID, foreign.ClientID = "m-x", "console"
	foreign.ProtocolMetadata = (&kmsg.ConsumerMemberMetadata{Topics: []string{"lines"}}).AppendTo(nil)
	group.Members = append(group.Members, member("1", "wc-1-StreamThread-1-consumer", "counts_3"),
		member("0", "wc-0-StreamThread-2-consumer", "counts_2"), member("0", "wc-0-StreamThread-1-consumer", "counts_1", "counts_0"), foreign)
	answerDescribe(cluster, group)

	s, err := Describe(t.Context(), adm, "wordcount", wordCountPlan())
	if err != nil {
		t.Fatal(err)
	}
	if s.ApplicationID != "wordcount" || s.State != "Stable" || s.Generation != 5 || s.ClusterID == "" || s.Taken.IsZero() || len(s.Instances) != 3 {
		t.Fatalf("%+v", s)
	}
	if got := s.Instances[0]; got.ClientID != "console" || !strings.Contains(got.Members[0].Problem, "other applications") {
		t.Errorf("the foreign member is not told: %+v", got)
	}
	want := Instance{
		Host: "host-0:80", ProcessID: "p-0", ClientID: "wc-0", Stores: []string{"counts"},
		InstanceIDs: []string{"wc-0-StreamThread-1-consumer", "wc-0-StreamThread-2-consumer"},
		Active:      tasks("counts_0", "counts_1", "counts_2"), Standby: tasks("counts_9", "counts_9"),
		TopicPartitions: []TopicPartition{{"wordcount-counts-repartition", 0}, {"wordcount-counts-repartition", 1}, {"wordcount-counts-repartition", 2}},
	}
	got := s.Instances[1]
	got.Members = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDescribeWithoutATopologyTakesPartitionsFromTheAssignments(t *testing.T) {
	cluster, adm := admin(t)
	group := kmsg.NewDescribeGroupsResponseGroup()
	group.Group, group.State, group.ProtocolType = "wordcount", "Stable", "consumer"
	group.Members = append(group.Members, member("0", "wc-0-StreamThread-1-consumer", "counts_1"))
	answerDescribe(cluster, group)
	s, err := Describe(t.Context(), adm, "wordcount", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]TopicPartition{{"lines", 1}}, s.Instances[0].TopicPartitions); diff != "" {
		t.Error(diff)
	}
}

// TestDescribeDuringARebalance: Kafka's coordinator then hands out members without their subscriptions.
func TestDescribeDuringARebalance(t *testing.T) {
	cluster, adm := admin(t)
	group := kmsg.NewDescribeGroupsResponseGroup()
	group.Group, group.State, group.ProtocolType = "wordcount", "PreparingRebalance", "consumer"
	for _, instance := range []string{"wc-0-StreamThread-1-consumer", "wc-0-StreamThread-2-consumer"} {
		m := member("0", instance)
		m.ProtocolMetadata, m.MemberAssignment = nil, nil
		group.Members = append(group.Members, m)
	}
	answerDescribe(cluster, group)
	s, err := Describe(t.Context(), adm, "wordcount", wordCountPlan())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Instances) != 1 || s.Instances[0].ClientID != "wc-0" || len(s.Instances[0].InstanceIDs) != 2 || s.Generation != UnknownGeneration {
		t.Fatalf("%+v", s)
	}
	if problem := s.Instances[0].Members[0].Problem; !strings.Contains(problem, "PreparingRebalance") {
		t.Errorf("problem %q does not name the state", problem)
	}
}

func TestDescribeUnknownGroupIsDead(t *testing.T) {
	_, adm := admin(t)
	s, err := Describe(t.Context(), adm, "nobody", nil)
	if err != nil || s.State != "Dead" || len(s.Instances) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestDescribeReportsTheCoordinatorsError(t *testing.T) {
	cluster, adm := admin(t)
	group := kmsg.NewDescribeGroupsResponseGroup()
	group.Group, group.ErrorCode = "wordcount", kerr.InvalidGroupID.Code
	answerDescribe(cluster, group)
	if _, err := Describe(t.Context(), adm, "wordcount", nil); !errors.Is(err, kerr.InvalidGroupID) || !strings.Contains(err.Error(), `"wordcount"`) {
		t.Errorf("%v", err)
	}
}

// problemsOf lists the topic errors joined in err.
func problemsOf(err error) map[string]TopicProblem {
	problems := map[string]TopicProblem{}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, each := range joined.Unwrap() {
			for topic, problem := range problemsOf(each) {
				problems[topic] = problem
			}
		}
		return problems
	}
	if one, ok := errors.AsType[*TopicError](err); ok {
		problems[one.Topic] = one.Problem
	}
	return problems
}

func TestCheckSources(t *testing.T) {
	_, adm := admin(t, kfake.SeedTopics(3, "in"))
	counts, err := CheckSources(t.Context(), adm, []string{"absent", "in", "in", "other"})
	if diff := cmp.Diff(map[string]TopicProblem{"absent": TopicMissing, "other": TopicMissing}, problemsOf(err)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int32{"in": 3}, counts); diff != "" {
		t.Error(diff)
	}
	if counts, err := CheckSources(t.Context(), adm, nil); err != nil || len(counts) != 0 {
		t.Errorf("no sources: %v, %v", counts, err)
	}
}

func internalTopic(name string, partitions int32, policy string) topology.InternalTopic {
	return topology.InternalTopic{Name: name, Partitions: partitions, Config: map[string]string{cleanupPolicy: policy}}
}

func TestEnsureTopicsCreatesOnceAndChecks(t *testing.T) {
	_, adm := admin(t)
	topics := []topology.InternalTopic{internalTopic("app-s-changelog", 4, "compact"), internalTopic("app-w-changelog", 2, "compact,delete")}
	for range 2 { // the second time all exist
		if err := EnsureTopics(t.Context(), adm, topics, 0); err != nil {
			t.Fatal(err)
		}
	}
	counts, err := CheckSources(t.Context(), adm, []string{"app-s-changelog", "app-w-changelog"})
	if diff := cmp.Diff(map[string]int32{"app-s-changelog": 4, "app-w-changelog": 2}, counts); diff != "" || err != nil {
		t.Error(diff, err)
	}
	configs, err := adm.DescribeTopicConfigs(t.Context(), "app-s-changelog")
	if err != nil {
		t.Fatal(err)
	}
	if err := comparePolicies(configs[0], "compact"); err != nil {
		t.Error(err)
	}

	changed := []topology.InternalTopic{internalTopic("app-s-changelog", 5, "compact"), internalTopic("app-w-changelog", 2, "compact")}
	err = EnsureTopics(t.Context(), adm, changed, 0)
	if diff := cmp.Diff(map[string]TopicProblem{"app-s-changelog": TopicPartitions, "app-w-changelog": TopicCleanup}, problemsOf(err)); diff != "" {
		t.Error(diff)
	}
}

// TestEnsureTopicsSurvivesAnotherProcessBeingFirst: the topic is missing when asked for and exists when it is created.
func TestEnsureTopicsSurvivesAnotherProcessBeingFirst(t *testing.T) {
	const topic = "app-s-changelog"
	cluster, adm := admin(t)
	topics := []topology.InternalTopic{internalTopic(topic, 1, "compact")}
	if err := EnsureTopics(t.Context(), adm, topics, 0); err != nil {
		t.Fatal(err)
	}
	brokers, err := adm.ListBrokers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hidden := false
	cluster.ControlKey(kmsg.Metadata.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		broker := kmsg.NewMetadataResponseBroker()
		broker.NodeID, broker.Host, broker.Port = brokers[0].NodeID, brokers[0].Host, brokers[0].Port
		resp.Brokers, resp.ControllerID = append(resp.Brokers, broker), broker.NodeID
		absent := kmsg.NewMetadataResponseTopic()
		absent.Topic, absent.ErrorCode = kmsg.StringPtr(topic), kerr.UnknownTopicOrPartition.Code
		resp.Topics = append(resp.Topics, absent)
		hidden = true
		return resp, nil, true // once: the next request is answered as usual
	})
	if err := EnsureTopics(t.Context(), adm, topics, 0); err != nil || !hidden {
		t.Errorf("hidden %v: %v", hidden, err)
	}
}

func TestEnsureTopicsTellsWhyCreationFailed(t *testing.T) {
	cases := map[int16]string{
		kerr.InvalidReplicationFactor.Code: "ReplicationFactor",
		kerr.TopicAuthorizationFailed.Code: "allow the application",
		kerr.PolicyViolation.Code:          "4 partitions, cleanup.policy=compact",
	}
	for code, fix := range cases {
		cluster, adm := admin(t)
		cluster.ControlKey(kmsg.CreateTopics.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
			resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
			answer := kmsg.NewCreateTopicsResponseTopic()
			answer.Topic, answer.ErrorCode = "app-s-changelog", code
			resp.Topics = append(resp.Topics, answer)
			return resp, nil, true
		})
		err := EnsureTopics(t.Context(), adm, []topology.InternalTopic{internalTopic("app-s-changelog", 4, "compact")}, 3)
		if problemsOf(err)["app-s-changelog"] != TopicCreate || !strings.Contains(err.Error(), fix) {
			t.Errorf("code %d: %v; want a fix that says %q", code, err, fix)
		}
	}
}
