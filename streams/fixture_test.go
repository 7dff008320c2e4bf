package streams_test

import (
	"crypto/rand"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
)

// names are those of one word count: on a cluster that outlives a test nobody else has them.
type names struct{ app, lines, counts string }

func namesOf(run string) names { return names{"wordcount-" + run, "lines-" + run, "counts-" + run} }

// fixture is a cluster with the topics of a word count.
type fixture struct {
	*testing.T
	names
	brokers []string
	client  *kgo.Client
}

const partitions = 4

// newFixture is on a cluster of its own, or on that at KAFKA_BOOTSTRAP.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := newClient(t, brokers(t))
	f.create(partitions, f.lines, f.counts)
	return f
}

func brokers(t *testing.T) []string {
	t.Helper()
	if named := os.Getenv("KAFKA_BOOTSTRAP"); named != "" {
		return strings.Split(named, ",")
	}
	return embedded(t)
}

func embedded(t *testing.T) []string {
	t.Helper()
	c, err := cluster.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.Brokers()
}

func newClient(t *testing.T, brokers []string) *fixture {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &fixture{T: t, names: namesOf(strings.ToLower(rand.Text()[:8])), brokers: brokers, client: client}
}

func (f *fixture) admin() *kadm.Client { return kadm.NewClient(f.client) }

func (f *fixture) create(partitions int32, topics ...string) {
	f.Helper()
	answers, err := f.admin().CreateTopics(f.Context(), partitions, 1, nil, topics...)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		f.Fatal(err)
	}
	f.eventually("the brokers to know the topics", func() bool { // who creates them answers before they all do
		known, err := f.admin().ListTopics(f.Context(), topics...)
		return err == nil && known.Error() == nil && len(known) == len(topics)
	})
}

// config is that of an instance of the word count.
func (f *fixture) config(clientID string) streams.Config {
	return streams.Config{
		AppID: f.app, ClientID: clientID, Brokers: f.brokers, StateDir: f.TempDir(), Threads: 2,
		CommitInterval: 50 * time.Millisecond, SessionTimeout: 10 * time.Second, HeartbeatInterval: 100 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// wordCount is the topology that most tests run.
func (n names) wordCount() (*streams.Builder, streams.TableRef[string, int64]) {
	b := streams.NewBuilder()
	counts := b.Stream(n.lines, serde.Bytes, serde.String).
		FlatMapValues(strings.Fields).
		GroupBy(func(_ []byte, w string) string { return w }, serde.String).
		Count("word-counts")
	counts.ToStream().To(n.counts, serde.String, serde.Int64)
	return b, counts.Ref()
}

func (n names) repartition() string { return n.app + "-word-counts-repartition" }
func (n names) changelog() string   { return n.app + "-word-counts-changelog" }
