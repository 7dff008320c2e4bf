package streams_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
)

// grow gives a topic more partitions.
func (f *fixture) grow(topic string, n int) {
	f.Helper()
	answers, err := f.admin().UpdatePartitions(f.Context(), n, topic)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		f.Fatal(err)
	}
}

// produceEverywhere writes a record with a key of its own to each partition, and adds to what must come out.
func (f *fixture) produceEverywhere(topic string, n int, want map[string]int64) {
	f.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		f.Fatal(err)
	}
	defer client.Close()
	for p := range n {
		key := fmt.Sprintf("%s-%d-%d", topic, p, len(want))
		record := &kgo.Record{Topic: topic, Partition: int32(p), Key: []byte(key), Value: []byte{0, 0, 0, 0, 0, 0, 0, 1}}
		if err := client.ProduceSync(f.Context(), record).FirstErr(); err != nil {
			f.Fatal(err)
		}
		want[key] = 1
	}
}

// S139: a source topic grows while two processes run. Both notice, the leader alone acts: one rebalance, and every new partition
// is read. Processes that were told of a task before they noticed look for themselves.
func TestGrownTopicIsReadAfterOneRebalance(t *testing.T) {
	for name, ages := range map[string][2]time.Duration{
		"both watch":        {20 * time.Millisecond, 20 * time.Millisecond},
		"one never watches": {20 * time.Millisecond, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var apps []*running
			for i, age := range ages {
				b := streams.NewBuilder()
				b.Stream(f.lines, serde.Bytes, serde.Int64).To(f.counts, serde.Bytes, serde.Int64)
				cfg := f.config(fmt.Sprintf("wc-%d", i))
				cfg.MetadataMaxAge = age
				apps = append(apps, f.start(b, cfg))
				f.settled(4, apps...) // so that the first leads
			}
			before := f.settled(4, apps...)
			f.grow(f.lines, 8)
			f.eventually("the rebalance", func() bool { return apps[0].reached(before+1) && apps[1].reached(before+1) })
			if after := f.settled(8, apps...); after != before+1 {
				t.Errorf("generation %d after %d, want one step", after, before)
			}
			want := map[string]int64{}
			f.produceEverywhere(f.lines, 8, want)
			f.countsUntil(want)
			for _, app := range apps {
				app.end()
			}
		})
	}
}

// What is written to a new partition before the process has noticed it is read, also by an application that begins with what is
// new.
func TestGrownTopicIsReadFromItsBeginning(t *testing.T) {
	f := newFixture(t)
	b := streams.NewBuilder()
	b.Stream(f.lines, serde.Bytes, serde.Int64).To(f.counts, serde.Bytes, serde.Int64)
	cfg := f.config("wc-0")
	cfg.OffsetReset, cfg.MetadataMaxAge = streams.Latest, time.Second
	f.produceEverywhere(f.lines, 4, map[string]int64{"old": 0}) // before its time
	app := f.start(b, cfg)
	f.settled(4, app)
	want := map[string]int64{}
	f.grow(f.lines, 6)
	f.produceEverywhere(f.lines, 6, want)
	f.countsUntil(want)
	app.end()
}

// S139: a topic that is merged with a wider one grows: no new task, but one partition more for some. They are opened anew, with their
// positions.
func TestGrownTopicGivesTasksMoreInputs(t *testing.T) {
	guarantees(t, func(t *testing.T, g streams.Guarantee) {
		f := newFixture(t)
		wide := f.app + "-wide"
		f.create(6, wide)
		b := streams.NewBuilder()
		b.Stream(f.lines, serde.Bytes, serde.Int64).Merge(b.Stream(wide, serde.Bytes, serde.Int64)).To(f.counts, serde.Bytes, serde.Int64)
		cfg := f.config("wc-0")
		cfg.MetadataMaxAge, cfg.Guarantee = 20*time.Millisecond, g
		app := f.start(b, cfg)
		f.settled(6, app)
		want := map[string]int64{}
		f.produceEverywhere(wide, 6, want)
		f.produceEverywhere(f.lines, 4, want)
		f.countsUntil(want)
		f.grow(f.lines, 6)
		f.produceEverywhere(f.lines, 6, want)
		f.countsUntil(want)
		app.end()
		if n := app.metric("millrace_records_processed_total"); n != float64(len(want)) {
			t.Errorf("%v records were processed, want each of %d once", n, len(want))
		}
	})
}

// S139: where keys would part from their state growth ends the application, with the topics and what to do.
func TestGrownTopicOfStateEndsTheApplication(t *testing.T) {
	f := newFixture(t)
	b, _ := f.wordCount()
	cfg := f.config("wc-0")
	cfg.MetadataMaxAge = 20 * time.Millisecond
	app := f.start(b, cfg)
	f.settled(8, app)
	f.grow(f.lines, 8)
	e := as(t, app.wait(), streams.KindTopic)
	if e.Topic != f.repartition() {
		t.Errorf("the error is about topic %q", e.Topic)
	}
	for _, part := range []string{f.lines + " from 4 to 8 partitions", "under another AppID", f.repartition()} {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, e)
		}
	}
	// A restart says the same.
	b, _ = f.wordCount()
	if e := as(t, f.start(b, cfg).wait(), streams.KindTopic); e.Topic != f.repartition() {
		t.Errorf("after a restart: %v", e)
	}
}
