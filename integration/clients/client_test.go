package clients

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A client is one row of the matrix.
type client struct {
	name   string
	pin    pin               // where its version is written down
	limits map[string]string // by case, in the words of its program
	cases  []string          // that it can be asked to play

	// prepare installs the client and returns how to start its program.
	prepare func(t *testing.T) starter

	// play takes the place of a program where the client is a set of tools.
	play func(t *testing.T, addr string) []result

	instance func(id string) string // what the group knows the instance id as; nil: as it is
}

// A starter makes the command that plays a client's cases against a broker. dir is the program's own.
type starter func(ctx context.Context, at endpoint, dir string) *exec.Cmd

// common are the cases of a client that can do everything.
var common = []string{"produce-consume", "admin", "static-bounce", "fenced", "batch-removal", "transactions"}

const (
	noStatic  = "no static membership: there is no way to set group.instance.id"
	noRemoval = "no admin request that removes members by instance id"
)

var matrix = []client{
	{name: "Java consumer, producer, admin", pin: kafkaPin, cases: common, prepare: java("Client")},
	{name: "Kafka Streams", pin: kafkaPin, prepare: java("Streams"),
		cases:    []string{"produce-consume", "static-bounce", "fenced", "batch-removal", "transactions"},
		instance: func(id string) string { return id + "-1" }}, // a thread's number
	{name: "Kafka's command-line tools", pin: kafkaPin, play: playTools, cases: []string{"produce-consume", "admin", "batch-removal"}},
	{name: "librdkafka (confluent-kafka)", pin: pin{"python/requirements.txt", regexp.MustCompile(`(?m)^confluent-kafka==(.+)$`)},
		cases: common, prepare: python("librdkafka.py"), limits: limits("batch-removal", noRemoval)},
	{name: "kafka-python", pin: pin{"python/requirements.txt", regexp.MustCompile(`(?m)^kafka-python==(.+)$`)}, cases: common, prepare: python("kafkapython.py")},
	{name: "kafkajs", pin: pin{"kafkajs/package.json", regexp.MustCompile(`"kafkajs": "(.+)"`)},
		cases: common, prepare: node, limits: limits("static-bounce", noStatic, "fenced", noStatic, "batch-removal", noRemoval)},
	{name: "sarama", pin: pin{"sarama/go.mod", regexp.MustCompile(`IBM/sarama v(\S+)`)}, cases: common, prepare: goProgram("sarama")},
	{name: "franz-go", pin: pin{"../../go.mod", regexp.MustCompile(`twmb/franz-go v(\S+)`)}, cases: common, prepare: goProgram("franz")},
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

// plays says whether the client is asked to play a case against a broker.
func (c client) plays(broker string, tc testCase) bool {
	return slices.Contains(c.cases, tc.name) && (tc.only == nil || slices.Contains(tc.only, broker))
}

// slug is the client's name for tests and files.
func (c client) slug() string {
	return strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(c.name), "-"), "-")
}

// known is the instance id by which a group knows an instance.
func (c client) known(id string) string {
	if c.instance == nil {
		return id
	}
	return c.instance(id)
}
