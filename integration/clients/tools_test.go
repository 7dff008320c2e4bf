package clients

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// tools runs Kafka's command-line tools, as its shell scripts do.
type tools struct {
	ctx context.Context
	jvm jvm
	at  endpoint
	dir string
}

// playTools plays the cases that the tools have commands for, two at a time: a tool is mostly the start of a JVM.
func playTools(t *testing.T, at endpoint) (all []result) {
	ctx, cancel := context.WithTimeout(t.Context(), programTimeout)
	defer cancel()
	k := tools{ctx: ctx, jvm: javaJars(t), at: at, dir: t.TempDir()}
	played := make(chan result)
	halves := [][]toolCase{
		{{"produce-consume", k.produceConsume}, {"admin", k.admin}},
		{{"batch-removal", k.batchRemoval}, {"operate", k.operate}},
	}
	for _, half := range halves {
		go func() {
			for _, c := range half {
				r := result{Case: c.name, OK: true}
				if err := c.play(); err != nil {
					r = result{Case: c.name, Error: err.Error()}
				}
				played <- r
			}
		}()
	}
	for range len(halves[0]) + len(halves[1]) {
		all = append(all, <-played)
	}
	return all
}

// A toolCase is a case that is played by running tools.
type toolCase struct {
	name string
	play func() error
}

// run runs one tool and returns what it prints. Some tools tell of a failure only there and exit with status 0.
func (k tools) run(input, class string, args ...string) (string, error) {
	full := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", k.jvm.logging, "-cp", k.jvm.classpath, class, "--bootstrap-server", k.at.addr}
	cmd := exec.CommandContext(k.ctx, k.jvm.java, append(full, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", class, strings.Join(args, " "), err, tail(stdout.String(), 20), tail(stderr.String(), 20))
	}
	return stdout.String() + stderr.String(), nil
}

func (k tools) topics(args ...string) (string, error) {
	return k.run("", "org.apache.kafka.tools.TopicCommand", args...)
}

func (k tools) groups(args ...string) (string, error) {
	return k.run("", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", args...)
}

// A step runs a tool and looks for words in what it prints.
type step struct {
	tool func(args ...string) (string, error)
	args []string
	want []string // all of them, in one line
	not  string   // nowhere
}

func (s step) run() error {
	out, err := s.tool(s.args...)
	if err != nil {
		return err
	}
	if s.not != "" && strings.Contains(out, s.not) {
		return fmt.Errorf("%s still shows %q:\n%s", strings.Join(s.args, " "), s.not, out)
	}
	if len(s.want) == 0 {
		return nil
	}
	for line := range strings.Lines(out) {
		if hasAll(strings.Fields(line), s.want) {
			return nil
		}
	}
	return fmt.Errorf("%s shows no line with %v:\n%s", strings.Join(s.args, " "), s.want, out)
}

func hasAll(fields, words []string) bool {
	have := map[string]bool{}
	for _, f := range fields {
		have[f] = true
	}
	for _, w := range words {
		if !have[w] {
			return false
		}
	}
	return true
}

func (k tools) produceConsume() error {
	const name = "produce-consume"
	if _, err := k.topics("--create", "--topic", name, "--partitions", "2"); err != nil {
		return err
	}
	var input strings.Builder
	for i := range 20 {
		fmt.Fprintf(&input, "value-%d\n", i)
	}
	if _, err := k.run(input.String(), "org.apache.kafka.tools.ConsoleProducer", "--topic", name); err != nil {
		return err
	}
	out, err := k.run("", "org.apache.kafka.tools.consumer.ConsoleConsumer",
		"--topic", name, "--group", name, "--from-beginning", "--max-messages", "20", "--timeout-ms", "30000")
	if err != nil {
		return err
	}
	if n := strings.Count(out, "value-"); n != 20 {
		return fmt.Errorf("the console consumer printed %d records of 20:\n%s", n, out)
	}
	return nil
}

func (k tools) admin() error {
	const name = "admin"
	if err := k.consumeAsGroup(name, 3, 30); err != nil {
		return err
	}
	of := []string{"--group", name}
	with := func(args ...string) []string { return append(args, of...) }
	for _, s := range []step{
		{k.topics, []string{"--describe", "--topic", name}, []string{"PartitionCount:", "3"}, ""},
		{k.topics, []string{"--list"}, []string{name}, ""},
		{k.topics, []string{"--alter", "--topic", name, "--partitions", "4"}, nil, ""},
		{k.topics, []string{"--describe", "--topic", name}, []string{"PartitionCount:", "4"}, ""},
		{k.groups, []string{"--list"}, []string{name}, ""},
		{k.groups, with("--describe", "--state"), []string{name, "Empty"}, ""},
		{k.groups, with("--describe", "--offsets"), []string{name, "0", "10"}, ""},
		{k.groups, with("--reset-offsets", "--to-earliest", "--topic", name, "--execute"), []string{name, "0"}, ""},
		{k.groups, with("--describe", "--offsets"), []string{name, "0", "10"}, ""},
		{k.groups, with("--delete-offsets", "--topic", name), nil, "Error:"},
		{k.groups, with("--delete"), nil, "Error:"},
		{k.groups, []string{"--list"}, nil, name},
		{k.topics, []string{"--delete", "--topic", name}, nil, ""},
		{k.topics, []string{"--list"}, nil, name},
	} {
		if err := s.run(); err != nil {
			return err
		}
	}
	return nil
}

// batchRemoval uses the application reset tool, whose --force removes all members of a group.
func (k tools) batchRemoval() error {
	const name = "batch-removal"
	if err := k.staticMembers(name, "a", "b"); err != nil {
		return err
	}
	for _, s := range []step{
		{k.groups, []string{"--describe", "--group", name, "--members", "--verbose"}, []string{name, "a"}, ""},
		{k.groups, []string{"--describe", "--group", name, "--members", "--verbose"}, []string{name, "b"}, ""},
		{k.reset, []string{"--application-id", name, "--input-topics", name, "--force"}, nil, "ERROR"},
		{k.groups, []string{"--describe", "--group", name, "--state"}, []string{name, "Empty"}, ""},
	} {
		if err := s.run(); err != nil {
			return err
		}
	}
	return nil
}

func (k tools) reset(args ...string) (string, error) {
	return k.run("", "org.apache.kafka.tools.StreamsResetter", args...)
}

// consumeAsGroup lets a group commit all of a new topic, with as many records in each partition.
func (k tools) consumeAsGroup(name string, partitions, records int) error {
	if _, err := k.topics("--create", "--topic", name, "--partitions", fmt.Sprint(partitions)); err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(k.at.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	for i := range records {
		r := &kgo.Record{Topic: name, Partition: int32(i % partitions), Value: []byte("value")}
		if err := client.ProduceSync(k.ctx, r).FirstErr(); err != nil {
			return err
		}
	}
	_, err = k.run("", "org.apache.kafka.tools.consumer.ConsoleConsumer",
		"--topic", name, "--group", name, "--from-beginning", "--max-messages", fmt.Sprint(records), "--timeout-ms", "30000")
	return err
}

// staticMembers leaves static members in a group: they join, and close without leaving.
func (k tools) staticMembers(name string, instances ...string) error {
	if _, err := k.topics("--create", "--topic", name, "--partitions", "2"); err != nil {
		return err
	}
	joined := make(chan error, len(instances))
	for _, id := range instances {
		go func() { joined <- k.joinOnce(name, id, len(instances)) }()
	}
	for range instances {
		if err := <-joined; err != nil {
			return err
		}
	}
	return nil
}

// joinOnce is a static member that waits until the group has all of its members, and stays in it.
func (k tools) joinOnce(name, instance string, members int) error {
	settled := make(chan struct{})
	var once sync.Once
	client, err := kgo.NewClient(
		kgo.SeedBrokers(k.at.addr), kgo.ConsumerGroup(name), kgo.ConsumeTopics(name), kgo.InstanceID(instance),
		kgo.Balancers(kgo.RangeBalancer()), kgo.SessionTimeout(25*time.Minute), kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, p map[string][]int32) {
			if len(p[name]) == 2/members {
				once.Do(func() { close(settled) })
			}
		}),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	select {
	case <-settled:
		return nil
	case <-k.ctx.Done():
		return k.ctx.Err()
	}
}
