package integration

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/check"
	"github.com/millrace-io/millrace/integration/gen"
	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
)

const (
	partitions = 4
	lineWords  = 5
	vocabulary = 2000
	firstTime  = int64(1_700_000_000_000) // event time of line 0, milliseconds
	// patience bounds every wait; on a quiet machine none takes more than some seconds.
	patience = 90 * time.Second
)

// job is the names of one word count.
type job struct {
	AppID, Lines, Counts string

	access []kgo.Opt // how the test's own clients reach brokers that are not those of bootstrap
}

// options are those of the test's own clients.
func (j job) options(opts ...kgo.Opt) []kgo.Opt {
	return slices.Concat([]kgo.Opt{kgo.SeedBrokers(bootstrap...)}, j.access, opts)
}

const store = "word-counts"

func (j job) repartition() string { return j.AppID + "-" + store + "-repartition" }
func (j job) changelog() string   { return j.AppID + "-" + store + "-changelog" }

// newJob makes names that nobody has used, and their topics.
func newJob(t *testing.T) job {
	t.Helper()
	name := "it-" + strings.ToLower(rand.Text()[:10])
	j := job{AppID: name, Lines: name + "-lines", Counts: name + "-counts"}
	client := newClient(t)
	answers, err := kadm.NewClient(client).CreateTopics(t.Context(), partitions, 1, nil, j.Lines, j.Counts)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		t.Fatalf("create topics: %v", err)
	}
	return j
}

func newClient(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(bootstrap...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// topology is the word count. Words are what is between spaces.
func (j job) topology() (*streams.Builder, streams.Table[string, int64]) {
	b := streams.NewBuilder()
	table := b.Stream(j.Lines, serde.Bytes, serde.String).
		FlatMapValues(strings.Fields).
		GroupBy(func(_ []byte, word string) string { return word }, serde.String).
		Count(store)
	table.ToStream().To(j.Counts, serde.String, serde.Int64)
	return b, table
}

// config is what all processes of a job share. Sessions are short enough for a real broker to allow them and long
// enough for a busy machine.
func (j job) config(clientID, dir string, guarantee streams.Guarantee) streams.Config {
	return streams.Config{
		AppID: j.AppID, ClientID: clientID, Brokers: bootstrap, StateDir: dir, Threads: 2, Guarantee: guarantee,
		SessionTimeout: 30 * time.Second, HeartbeatInterval: 500 * time.Millisecond, CommitInterval: 100 * time.Millisecond,
		ReplicationFactor: 1,
	}
}

// app is an application that runs in this process.
type app struct {
	*streams.App
	ended chan struct{}
	err   error // once ended is closed
	stop  context.CancelFunc
}

// start runs an application until stop, or the end of the test.
func start(t *testing.T, b *streams.Builder, cfg streams.Config) *app {
	t.Helper()
	cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	running, err := streams.New(b, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &app{App: running, ended: make(chan struct{}), stop: cancel}
	go func() {
		defer close(a.ended)
		a.err = running.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-a.ended
	})
	return a
}

// close stops the application gracefully, which must succeed.
func (a *app) close(t *testing.T) {
	t.Helper()
	a.stop()
	<-a.ended
	if a.err != nil {
		t.Fatalf("the application ended with %v", a.err)
	}
}

// await waits until the application is in RUNNING.
func (a *app) await(t *testing.T, ctx context.Context) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for a.State() != streams.Running {
		select {
		case <-a.ended:
			t.Fatalf("the application ended: %v", a.err)
		case <-ctx.Done():
			t.Fatalf("the application is in %v: %v", a.State(), context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// input is the lines of a job: number n is the same whenever it is asked for.
type input struct {
	picker *gen.Picker
	words  [][]byte
	n      uint64
}

func newInput() *input {
	return &input{picker: gen.NewPicker(vocabulary, true), words: gen.Vocabulary(5, vocabulary)}
}

func (in *input) line(n uint64) []byte {
	return gen.AppendLine(nil, 5, n, lineWords, in.picker, in.words)
}

// record is the next line.
func (in *input) record(j job) *kgo.Record {
	n := in.n
	in.n++
	return &kgo.Record{Topic: j.Lines, Partition: int32(n % partitions), Value: in.line(n), Timestamp: time.UnixMilli(firstTime + int64(n))}
}

// feed writes the next lines and waits until they are acknowledged.
func (in *input) feed(t *testing.T, client *kgo.Client, j job, lines uint64) {
	t.Helper()
	records := make([]*kgo.Record, 0, lines)
	for range lines {
		records = append(records, in.record(j))
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatalf("write lines: %v", err)
	}
}

// fed is the number of words so far.
func (in *input) fed() uint64 { return in.n * lineWords }

// wanted is what the lines must leave in the repartition topic.
func (in *input) wanted() check.Topic { return wordsOf(in.written()) }

// written is what the lines so far must leave in their own topic.
func (in *input) written() check.Topic {
	topic := make(check.Topic, partitions)
	for n := range in.n {
		p := n % partitions
		topic[p] = append(topic[p], check.Record{Value: in.line(n), Timestamp: firstTime + int64(n)})
	}
	return topic
}

// wordsOf is what lines must leave in the repartition topic.
func wordsOf(lines check.Topic) check.Topic {
	hashed := kgo.StickyKeyPartitioner(nil).ForTopic("")
	topic := make(check.Topic, partitions)
	for _, line := range slices.Concat(lines...) {
		for word := range bytes.SplitSeq(line.Value, []byte(" ")) {
			p := hashed.Partition(&kgo.Record{Key: word}, partitions)
			topic[p] = append(topic[p], check.Record{Key: word, Value: word, Timestamp: line.Timestamp})
		}
	}
	return topic
}

// compare holds everything that a job has left against the replay. Nothing may be running that writes.
func (j job) compare(t *testing.T, in *input) {
	t.Helper()
	j.compareWords(t, in.wanted())
}

func (j job) compareWords(t *testing.T, words check.Topic) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	topics := map[string]check.Topic{}
	for _, name := range []string{j.repartition(), j.Counts, j.changelog()} {
		var err error
		if topics[name], err = check.Read(ctx, name, j.options()...); err != nil {
			t.Fatal(err)
		}
	}
	logged, err := check.LastCounts(topics[j.changelog()])
	err = errors.Join(err,
		check.AsMultiset(j.repartition(), topics[j.repartition()], words),
		check.InOrder(j.Counts, topics[j.Counts], check.RunningCounts(topics[j.repartition()])),
		check.Tables(j.changelog(), logged, check.Totals(words)))
	if err != nil {
		t.Fatal(err)
	}
}

// follow starts to follow the sink.
func (j job) follow(t *testing.T) *check.Follower {
	t.Helper()
	f, err := check.Follow(j.Counts, j.options(kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
