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
	play func(t *testing.T, at endpoint) []result

	instance func(id string) string // what the group knows the instance id as; nil: as it is
}

// A starter makes the command that plays a client's cases against a broker. dir is the program's own.
type starter func(ctx context.Context, at endpoint, dir string) *exec.Cmd

// common are the cases of a client that can do everything.
var common = []string{"produce-consume", "admin", "static-bounce", "fenced", "batch-removal", "transactions"}

// without is a list of cases that lacks one.
func without(cases []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(cases), func(c string) bool { return c == name })
}

const (
	noStatic  = "no static membership: there is no way to set group.instance.id"
	noRemoval = "no admin request that removes members by instance id"
)

var matrix = []client{
	{name: "Java consumer, producer, admin", pin: kafkaPin, cases: append(slices.Clip(common), "drafts"), prepare: java("Current")},
	{name: "Java consumer, producer, admin", pin: oldJava("3"), cases: without(common, "admin"), prepare: javaOf("3")},
	{name: "Java consumer, producer, admin", pin: oldJava("2"), cases: without(common, "admin"), prepare: javaOf("2")},
	{name: "Kafka Streams", pin: kafkaPin, prepare: java("Streams"),
		cases:    []string{"produce-consume", "static-bounce", "fenced", "batch-removal", "transactions", "killed"},
		instance: func(id string) string { return id + "-1" }}, // a thread's number
	{name: "Kafka's command-line tools", pin: kafkaPin, play: playTools, cases: []string{"produce-consume", "admin", "batch-removal", "operate"}},
	{name: "librdkafka (confluent-kafka)", pin: pin{"python/requirements.txt", regexp.MustCompile(`(?m)^confluent-kafka==(.+)$`)},
		cases: common, prepare: python("librdkafka.py"), limits: limits("batch-removal", noRemoval)},
	{name: "kafka-python", pin: pin{"python/requirements.txt", regexp.MustCompile(`(?m)^kafka-python==(.+)$`)}, cases: common, prepare: python("kafkapython.py")},
	{name: "kafkajs", pin: pin{"kafkajs/package.json", regexp.MustCompile(`"kafkajs": "(.+)"`)},
		cases: common, prepare: node, limits: limits("static-bounce", noStatic, "fenced", noStatic, "batch-removal", noRemoval)},
	{name: "sarama", pin: saramaPin, cases: common, prepare: goProgram("sarama")},
	{name: "sarama, in the protocol of Kafka 0.8.2,", pin: saramaPin, cases: []string{"old-requests"}, prepare: goProgram("sarama", "old-requests")},
	{name: "franz-go", pin: pin{"../../go.mod", regexp.MustCompile(`twmb/franz-go v(\S+)`)}, cases: common, prepare: goProgram("franz")},
}

var kafkaPin = pin{"../kafka/pom.xml", regexp.MustCompile(`<kafka.version>(.+)</kafka.version>`)}

var saramaPin = pin{"sarama/go.mod", regexp.MustCompile(`IBM/sarama v(\S+)`)}

// oldJava is the version of the older Java clients of a major release.
func oldJava(major string) pin {
	return pin{"java/versions.txt", regexp.MustCompile(`(?m)^kafka-clients (` + major + `\..+)$`)}
}

// A pin is the place in a manifest that names a version.
type pin struct {
	file    string
	pattern *regexp.Regexp
}

// version reads the version, or says why it cannot.
func (p pin) version() string {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	found := p.pattern.FindSubmatch(text)
	if found == nil {
		return "(no version in " + p.file + ")"
	}
	return string(found[1])
}

// label is the client with its version.
func (c client) label() string { return c.name + " " + c.pin.version() }

// anyBroker stands for whichever broker has what a case takes.
const anyBroker = ""

// plays says whether the client is asked to play a case against a broker.
func (c client) plays(broker string, tc testCase) bool {
	return slices.Contains(c.cases, tc.name) && (tc.only == nil || broker == anyBroker || slices.Contains(tc.only, broker))
}

// slug is the client's name for tests and files.
func (c client) slug() string {
	return strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(c.label()), "-"), "-")
}

// known is the instance id by which a group knows an instance.
func (c client) known(id string) string {
	if c.instance == nil {
		return id
	}
	return c.instance(id)
}
