package groupdiff

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace-io/millrace/integration/kafka"
	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const offsetsTopic = "__consumer_offsets"

// fill brings both sides to the same group: a and b in Stable, b restarted once, with an offset.
func (b *bench) fill(t *testing.T) (group string) {
	t.Helper()
	list, err := parseHand(base + `
		commit a offset=42
		join b none
		sync b`)
	if err != nil {
		t.Fatal(err)
	}
	if o := b.play(t, 0, replay(list)); o.unknown != "" || o.steps != len(list) {
		t.Fatalf("%s %s\n%s", o.known, o.unknown, strings.Join(o.trace, "\n"))
	}
	return fmt.Sprintf("groupdiff-%s-%d", b.run, b.groups)
}

// Kafka's own formatters print our offsets topic, over the wire.
func TestKafkaToolsReadOurTopic(t *testing.T) {
	b := newBench(t)
	group := b.fill(t)
	client := newTopicClient(t, b.addrs[1])
	records := readTopic(t, client)
	for formatter, want := range map[string][]string{
		"OffsetsMessageFormatter": {`"group":"` + group + `"`, `"topic":"groupdiff"`, `"offset":42`, `"version":4`, `"topicId":"`},
		"GroupMetadataMessageFormatter": {`"group":"` + group + `"`, `"groupInstanceId":"b"`, `"protocol":"range"`, `"generation":2`,
			`"memberId":"` + currentMember(t, b.addrs[1], group, "b") + `"`, `"sessionTimeout":300000`},
	} {
		printed := consoleConsumer(t, b.addrs[1], formatter, len(records))
		last := ""
		for stream := json.NewDecoder(strings.NewReader(printed)); stream.More(); { // one object after the other, without line ends
			var object json.RawMessage
			if err := stream.Decode(&object); err != nil {
				t.Fatalf("%s prints no JSON: %v\n%s", formatter, err, printed)
			}
			if strings.Contains(string(object), `"group":"`+group+`"`) {
				last = string(object)
			}
		}
		for _, part := range want {
			if !strings.Contains(last, part) {
				t.Errorf("%s prints no %s:\n%s", formatter, part, printed)
			}
		}
	}
}

// consoleConsumer prints the first n records of our offsets topic.
func consoleConsumer(t *testing.T, addr, formatter string, n int) string {
	t.Helper()
	dir, err := kafka.RunDir()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd, err := kafka.Tool(ctx, dir, "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", addr, "--topic", offsetsTopic,
		"--partition", "0", "--offset", "earliest", "--max-messages", fmt.Sprint(n), "--timeout-ms", "60000",
		"--formatter", "org.apache.kafka.tools.consumer."+formatter)
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if err != nil {
		said := err.Error()
		if exit, ok := err.(*exec.ExitError); ok {
			said += "\n" + string(exit.Stderr)
		}
		t.Fatalf("console consumer: %s", said)
	}
	return string(out)
}

func newTopicClient(t *testing.T, addr string) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(offsetsTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.KeepControlRecords())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// readTopic reads everything that the offsets topic holds now.
func readTopic(t *testing.T, client *kgo.Client) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, offsetsTopic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	var records []*kgo.Record
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			records = append(records, r)
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return records
}

func currentMember(t *testing.T, addr, group, instance string) string {
	t.Helper()
	for _, m := range describe(t, addr, group).Members {
		if m.InstanceID != nil && *m.InstanceID == instance {
			return m.MemberID
		}
	}
	t.Fatalf("%s is not in group %s", instance, group)
	return ""
}

func describe(t *testing.T, addr, group string) kmsg.DescribeGroupsResponseGroup {
	t.Helper()
	q := kmsg.NewPtrDescribeGroupsRequest()
	q.Version, q.Groups = 5, []string{group}
	resp, err := newSide(addr, addr).call(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return resp.(*kmsg.DescribeGroupsResponse).Groups[0]
}

// Our machine takes over the offsets topic of a real broker: the same members with the same assignments, and the offsets.
func TestWeReadKafkasTopic(t *testing.T) {
	b := newBench(t)
	group := b.fill(t)
	m := coordinator.New(coordinator.Config{OffsetsPartitions: b.parts[0], NewID: func(string) string { return "unused" }})
	now := time.Now()
	logs := make([][]coordinator.LogRecord, b.parts[0])
	for _, r := range readTopic(t, newTopicClient(t, b.addrs[0])) {
		if !r.Attrs.IsControl() && !r.Attrs.IsTransactional() {
			logs[r.Partition] = append(logs[r.Partition], coordinator.LogRecord{Record: coordinator.Record{Key: r.Key, Value: r.Value}})
		}
	}
	for partition, log := range logs {
		for _, action := range m.Step(now, coordinator.Loaded{Partition: int32(partition), Records: log}) {
			if bad, ok := action.(*coordinator.BadRecord); ok {
				t.Errorf("%v", bad)
			}
		}
	}
	for id := range b.topics[0] {
		m.Step(now, coordinator.TopicChanged{Topic: topicName, ID: id, Partitions: 2})
	}
	want := describe(t, b.addrs[0], group)
	got := ask(t, m, now, func() kmsg.Request {
		q := kmsg.NewPtrDescribeGroupsRequest()
		q.Version, q.Groups = 5, []string{group}
		return q
	}()).(*kmsg.DescribeGroupsResponse).Groups[0]
	byID := func(list []kmsg.DescribeGroupsResponseGroupMember) map[string]string {
		members := map[string]string{}
		for _, m := range list {
			members[m.MemberID] = fmt.Sprintf("%s %s %s %q %q", text(m.InstanceID), m.ClientID, m.ClientHost, m.ProtocolMetadata, m.MemberAssignment)
		}
		return members
	}
	if got.State != "Stable" || got.Protocol != want.Protocol || len(got.Members) != 2 {
		t.Errorf("the group is %+v", got)
	}
	if diff := cmp.Diff(byID(want.Members), byID(got.Members)); diff != "" {
		t.Errorf("members (-kafka +ours):\n%s", diff)
	}
	fetched := ask(t, m, now, request{kind: "fetch", version: 7}.build(group, newNames())).(*kmsg.OffsetFetchResponse)
	if at := fetched.Topics[0].Partitions[0]; at.Offset != 42 || at.ErrorCode != 0 {
		t.Errorf("the offset is %+v", at)
	}
	for _, member := range want.Members {
		q := kmsg.NewPtrHeartbeatRequest()
		q.Version, q.Group, q.MemberID, q.InstanceID, q.Generation = 4, group, member.MemberID, member.InstanceID, 2
		if answer := ask(t, m, now, q).(*kmsg.HeartbeatResponse); answer.ErrorCode != 0 {
			t.Errorf("%s is answered %v", member.MemberID, kerr.ErrorForCode(answer.ErrorCode))
		}
	}
}

// ask sends a request that is answered at once.
func ask(t *testing.T, m *coordinator.Machine, now time.Time, q kmsg.Request) kmsg.Response {
	t.Helper()
	for _, action := range m.Step(now, coordinator.Request{ID: 1, Host: "/127.0.0.1", Req: q}) {
		if reply, ok := action.(*coordinator.Reply); ok {
			return reply.Resp
		}
	}
	t.Fatalf("%s is not answered", kmsg.NameForKey(q.Key()))
	return nil
}
