package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// operate uses the tools that no other case needs, as an operator would. What "millrace dev" does not have, the tools
// must hear in words that say so.
func (k tools) operate() error {
	const name = "operate"
	if _, err := k.topics("--create", "--topic", name, "--partitions", "1"); err != nil {
		return err
	}
	cut := filepath.Join(k.dir, "cut.json")
	if err := os.WriteFile(cut, fmt.Appendf(nil, `{"partitions": [{"topic": %q, "partition": 0, "offset": 5}]}`, name), 0o644); err != nil {
		return err
	}
	of := []string{"--entity-type", "topics", "--entity-name", name}
	for _, s := range []step{
		{k.tool("VerifiableProducer"), []string{"--topic", name, "--max-messages", "20"}, nil, "producer_send_error"},
		{k.tool("VerifiableConsumer"), []string{"--topic", name, "--group-id", name, "--max-messages", "20", "--reset-policy", "earliest"}, nil, `"success":false`},
		{k.tool("ProducerPerformance"), []string{"--topic", name, "--num-records", "50", "--record-size", "20", "--throughput", "-1", "--transactional-id", name,
			"--transaction-duration-ms", "600000"}, []string{"50", "records", "sent,"}, ""},
		{k.tool("TransactionsCommand"), []string{"list"}, []string{name}, ""},
		{k.tool("TransactionsCommand"), []string{"find-hanging", "--topic", name}, []string{"Topic", "ProducerId"}, name},
		{k.tool("GetOffsetShell"), []string{"--topic", name}, []string{name + ":0:71"}, ""}, // 20, 50 and a marker
		{k.tool("DeleteRecordsCommand"), []string{"--offset-json-file", cut}, []string{"low_watermark:", "5"}, "error:"},
		{k.tool("GetOffsetShell"), []string{"--topic", name, "--time", "earliest"}, []string{name + ":0:5"}, ""},
		{k.tool("ConfigCommand"), append([]string{"--alter", "--add-config", "retention.ms=86400000"}, of...), nil, ""},
		{k.tool("ConfigCommand"), append([]string{"--describe"}, of...), []string{"retention.ms=86400000"}, ""},
		{k.tool("LogDirsCommand"), []string{"--describe", "--topic-list", name}, nil, "Exception"},
		{k.tool("BrokerApiVersionsCommand"), nil, []string{"JoinGroup(11):", "9"}, ""},
		{k.tool("LeaderElectionCommand"), []string{"--election-type", "preferred", "--topic", name, "--partition", "0"}, nil, "Error"},
		{k.tool("GroupsCommand"), []string{"--list"}, []string{name, "Classic", "consumer"}, ""},
	} {
		if err := s.run(); err != nil {
			return err
		}
	}
	if err := k.printed("OffsetsMessageFormatter", `"group":"operate"`, `"offset":20`); err != nil {
		return err
	}
	if err := k.printed("GroupMetadataMessageFormatter", `"group":"operate"`, `"protocolType":"consumer"`); err != nil {
		return err
	}
	return k.refusals(name)
}

// tool runs one of Kafka's tools by the name of its class.
func (k tools) tool(class string) func(args ...string) (string, error) {
	return func(args ...string) (string, error) { return k.run("", "org.apache.kafka.tools."+class, args...) }
}

// printed looks for words in what one of Kafka's formatters prints of the coordinator's topic as it is now.
func (k tools) printed(formatter string, words ...string) error {
	records := 0
	err := readTopic(k.ctx, k.at.addr, offsetsTopic, kgo.ReadUncommitted(), func(*kgo.Record) error { records++; return nil })
	if err != nil {
		return err
	}
	out, err := k.run("", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--topic", offsetsTopic, "--from-beginning",
		"--formatter", "org.apache.kafka.tools.consumer."+formatter, "--max-messages", fmt.Sprint(records), "--timeout-ms", "60000")
	if err != nil {
		return err
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			return fmt.Errorf("%s shows no %s:\n%s", formatter, w, out)
		}
	}
	return nil
}

// refusals are what the tools say of things that an embedded cluster does not do.
func (k tools) refusals(topic string) error {
	if k.at.admin == "" {
		return nil // Kafka does them
	}
	for _, r := range []struct {
		class string
		args  []string
		words string
	}{
		{"TopicCommand", []string{"--create", "--topic", "bad name!"}, "contains one or more characters other than ASCII"},
		{"ConfigCommand", []string{"--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "retention=1"}, "Unknown topic config name: retention"},
		{"ConfigCommand", []string{"--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "log.cleaner.backoff.ms=10"}, "embedded cluster's are fixed"},
		{"ConfigCommand", []string{"--describe", "--entity-type", "clients"}, "does not support DESCRIBE_CLIENT_QUOTAS"},
		{"AclCommand", []string{"--list"}, "No Authorizer is configured"},
		{"streams.StreamsGroupCommand", []string{"--describe", "--group", topic}, "does not support STREAMS_GROUP_DESCRIBE"},
		{"consumer.group.ShareGroupCommand", []string{"--describe", "--group", topic}, "does not support SHARE_GROUP_DESCRIBE"},
	} {
		out, err := k.run("", "org.apache.kafka.tools."+r.class, r.args...)
		if err != nil {
			out += err.Error() // it has the output of a tool that fails
		}
		if !strings.Contains(out, r.words) {
			return fmt.Errorf("%s %s does not say %q:\n%s", r.class, strings.Join(r.args, " "), r.words, out)
		}
	}
	return nil
}
