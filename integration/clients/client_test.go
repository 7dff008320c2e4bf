package clients

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
)

// A client is one row of the matrix.
type client struct {
	name   string
	pin    pin               // where its version is written down
	limits map[string]string // by case, in the words of its program
	only   []string          // the cases that it can be asked to play; nil means all

	// prepare installs the client and returns how to start its program against a broker. dir is the program's own.
	prepare func(t *testing.T) func(ctx context.Context, addr, dir string) *exec.Cmd

	// play takes the place of a program where the client is a set of tools.
	play func(t *testing.T, addr string) []result

	instance func(id string) string // what the group knows the instance id as; nil: as it is
}

const (
	noStatic  = "no static membership: there is no way to set group.instance.id"
	noRemoval = "no admin request that removes members by instance id"
)

var matrix = []client{
	{name: "Java consumer, producer, admin", pin: kafkaPin, prepare: java("Client")},
	{name: "Kafka Streams", pin: kafkaPin, prepare: java("Streams"),
		only:     []string{"produce-consume", "static-bounce", "fenced", "batch-removal", "transactions"},
		instance: func(id string) string { return id + "-1" }}, // a thread's number
	{name: "Kafka's command-line tools", pin: kafkaPin, play: playTools, only: []string{"produce-consume", "admin", "batch-removal"}},
	{name: "librdkafka (confluent-kafka)", pin: pin{"python/requirements.txt", regexp.MustCompile(`(?m)^confluent-kafka==(.+)$`)},
		prepare: python("librdkafka.py"), limits: limits("batch-removal", noRemoval)},
	{name: "kafka-python", pin: pin{"python/requirements.txt", regexp.MustCompile(`(?m)^kafka-python==(.+)$`)}, prepare: python("kafkapython.py")},
	{name: "kafkajs", pin: pin{"kafkajs/package.json", regexp.MustCompile(`"kafkajs": "(.+)"`)},
		prepare: node, limits: limits("static-bounce", noStatic, "fenced", noStatic, "batch-removal", noRemoval)},
	{name: "sarama", pin: pin{"sarama/go.mod", regexp.MustCompile(`IBM/sarama v(\S+)`)}, prepare: goProgram("sarama")},
	{name: "franz-go", pin: pin{"../../go.mod", regexp.MustCompile(`twmb/franz-go v(\S+)`)}, prepare: goProgram("franz")},
}

var kafkaPin = pin{"../kafka/pom.xml", regexp.MustCompile(`<kafka.version>(.+)</kafka.version>`)}

// A pin is the place in a manifest that names a version.
type pin struct {
	file    string
	pattern *regexp.Regexp
}

// label is the client with its version.
func (c client) label() string {
	text, err := os.ReadFile(c.pin.file)
	if err != nil {
		return c.name + " (" + err.Error() + ")"
	}
	found := c.pin.pattern.FindSubmatch(text)
	if found == nil {
		return c.name + " (no version in " + c.pin.file + ")"
	}
	return c.name + " " + string(found[1])
}

func (c client) plays(name string) bool { return c.only == nil || slices.Contains(c.only, name) }

// known is the instance id by which a group knows an instance.
func (c client) known(id string) string {
	if c.instance == nil {
		return id
	}
	return c.instance(id)
}
