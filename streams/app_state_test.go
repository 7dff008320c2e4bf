package streams_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/streams"
)

// counted runs the word count over the poem and stops it. It returns the configuration, with the state directory.
func (f *fixture) counted() streams.Config {
	f.Helper()
	cfg := f.config("wc-0")
	cfg.Guarantee = streams.ExactlyOnce
	b, _ := f.wordCount()
	app := f.start(b, cfg)
	f.produce(poem...)
	f.countsUntil(poemCounts)
	app.end()
	return cfg
}

// rows starts the word count again, waits until everything is restored, and returns the local rows and how many local states had to
// be rebuilt.
func (f *fixture) rows(cfg streams.Config) (rows map[string]int64, rebuilds float64) {
	f.Helper()
	b, counts := f.wordCount()
	app := f.start(b, cfg)
	app.untilSpread(4)
	view, err := app.View(counts)
	if err != nil {
		f.Fatal(err)
	}
	all, failed := view.All()
	rows = maps.Collect(all)
	if err := failed(); err != nil {
		f.Fatal(err)
	}
	rebuilds = app.metric("millrace_state_rebuilds_total")
	app.end()
	return rows, rebuilds
}

// cleanup changes the cleanup policy of a topic.
func (f *fixture) cleanup(topic, policy string) {
	f.Helper()
	answers, err := f.admin().AlterTopicConfigs(f.Context(), []kadm.AlterConfig{{Name: "cleanup.policy", Value: &policy}}, topic)
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		f.Fatal(err)
	}
	f.eventually("the brokers to know the policy", func() bool {
		got, err := f.admin().DescribeTopicConfigs(f.Context(), topic)
		return err == nil && slices.ContainsFunc(got[0].Configs, func(c kadm.Config) bool { return c.Key == "cleanup.policy" && c.MaybeValue() == policy })
	})
}

// deleteRecords deletes everything before the end of a topic, which must not be compacted only.
func (f *fixture) deleteRecords(topic string) {
	f.Helper()
	f.eventually("the records to be deleted", func() bool { // a new policy takes a moment to reach the log
		ends, err := f.admin().ListEndOffsets(f.Context(), topic)
		if err != nil {
			return false
		}
		deleted, err := f.admin().DeleteRecords(f.Context(), ends.Offsets())
		return err == nil && deleted.Error() == nil
	})
}

func TestDamagedStateIsRebuilt(t *testing.T) {
	f := newFixture(t)
	cfg := f.counted()
	damaged := 0
	err := filepath.Walk(cfg.StateDir, func(path string, info os.FileInfo, err error) error {
		if err != nil || filepath.Ext(path) != ".sst" {
			return err
		}
		damaged++
		return os.WriteFile(path, []byte("not a table"), 0o644)
	})
	if err != nil || damaged == 0 {
		t.Fatalf("damaged %d files: %v", damaged, err)
	}
	rows, rebuilds := f.rows(cfg)
	if !maps.Equal(rows, poemCounts) || rebuilds == 0 {
		t.Errorf("after %v rebuilds the rows are %v, want %v", rebuilds, rows, poemCounts)
	}
}

// State that was made from a changelog which was deleted and created again is worth nothing.
func TestStateOfAnotherChangelogIsRebuilt(t *testing.T) {
	f := newFixture(t)
	cfg := f.counted()
	if _, err := f.admin().DeleteTopic(f.Context(), f.changelog()); err != nil {
		t.Fatal(err)
	}
	rows, rebuilds := f.rows(cfg)
	if len(rows) != 0 || rebuilds == 0 {
		t.Errorf("after %v rebuilds the rows are %v, but the changelog is empty", rebuilds, rows)
	}
}

// A changelog whose beginning was deleted after the local state was written does not continue it.
func TestStateBeforeTheChangelogsBeginningIsRebuilt(t *testing.T) {
	f := newFixture(t)
	cfg := f.counted()
	old := filepath.Join(t.TempDir(), "old")
	if err := os.CopyFS(old, os.DirFS(cfg.StateDir)); err != nil {
		t.Fatal(err)
	}
	b, _ := f.wordCount()
	app := f.start(b, cfg)
	f.produce(poem...)
	twice := maps.Clone(poemCounts)
	for w := range twice {
		twice[w] *= 2
	}
	f.countsUntil(twice)
	app.end()

	f.cleanup(f.changelog(), "compact,delete")
	f.deleteRecords(f.changelog())
	f.cleanup(f.changelog(), "compact")
	cfg.StateDir = old
	rows, rebuilds := f.rows(cfg)
	if len(rows) != 0 || rebuilds == 0 {
		t.Errorf("after %v rebuilds the rows are %v, but nothing is left in the changelog", rebuilds, rows)
	}
}

// Restoring waits for a transaction that is open at the end of the f.changelog(), and takes nothing of it when it is aborted.
func TestRestoreWaitsForAnOpenTransaction(t *testing.T) {
	f := newFixture(t)
	cfg := f.counted()
	zombie, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...), kgo.TransactionalID(f.app+"-zombie"), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.TransactionTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer zombie.Close()
	if err := zombie.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for p := range int32(partitions) {
		lie := &kgo.Record{Topic: f.changelog(), Partition: p, Key: []byte("the"), Value: []byte{0, 0, 0, 0, 0, 0, 0, 99}}
		if err := zombie.ProduceSync(t.Context(), lie).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	cfg.StateDir = t.TempDir()
	b, counts := f.wordCount()
	app := f.start(b, cfg)
	f.eventually("all tasks to be restored but for the open transaction", func() bool {
		return len(app.Threads()) > 0 && app.metric("millrace_restored_records_total") >= float64(len(poemCounts)) && app.metric("millrace_restoring_tasks") > 0
	})
	if app.State() == streams.Running {
		t.Fatal("running although the end of the changelog is not decided")
	}
	if err := zombie.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	app.untilSpread(4)
	view, err := app.View(counts)
	if err != nil {
		t.Fatal(err)
	}
	rows, failed := view.All()
	if got := maps.Collect(rows); failed() != nil || !maps.Equal(got, poemCounts) {
		t.Errorf("restored %v (%v), want %v", got, failed(), poemCounts)
	}
	app.end()
}

// A transaction that an earlier incarnation of a thread left open is ended when the thread starts, long before its time-out:
// otherwise everything behind it would stay invisible, to the application as well.
func TestStartEndsTheTransactionOfTheEarlierIncarnation(t *testing.T) {
	f := newFixture(t)
	cfg := f.config("wc-0")
	cfg.Guarantee = streams.ExactlyOnce
	earlier, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...), kgo.TransactionalID(f.app+"-wc-0-StreamThread-1-consumer"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionTimeout(10*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer earlier.Close()
	if err := earlier.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for p := range int32(partitions) {
		if err := earlier.ProduceSync(t.Context(), &kgo.Record{Topic: f.lines, Partition: p, Value: []byte("never counted")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	b, _ := f.wordCount()
	app := f.start(b, cfg)
	f.produce(poem...)
	f.countsUntil(poemCounts)
	app.end()
}

// Source records that were deleted before they were processed are a gap that is counted, not the end.
func TestPositionOutOfRangeIsReset(t *testing.T) {
	f := newFixture(t)
	cfg := f.counted()
	f.produce("lost words")
	f.deleteRecords(f.lines)
	b, _ := f.wordCount()
	app := f.start(b, cfg)
	app.untilSpread(4)
	f.produce(poem...)
	twice := maps.Clone(poemCounts)
	for w := range twice {
		twice[w] *= 2
	}
	f.countsUntil(twice)
	if n := app.metric("millrace_positions_reset_total"); n == 0 {
		t.Error("no reset was counted")
	}
	app.end()
}
