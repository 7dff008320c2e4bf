package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestBegunCommitIsCompleted kills the cluster after the intent to commit, before or after the first marker: the next start must
// complete the commit in both partitions. With the intent to abort, or that of another epoch, it must not.
func TestBegunCommitIsCompleted(t *testing.T) {
	for name, test := range map[string]struct {
		commit  bool
		newer   int16
		markers int
		visible int
	}{
		"commit":                         {commit: true, visible: 2},
		"commit, after the first marker": {commit: true, markers: 1, visible: 2},
		"abort":                          {commit: false, visible: 0},
		"commit of another transaction":  {commit: true, newer: 1, visible: 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			c, err := Start(DataDir(t.TempDir()), Topic("lines", 2))
			if err != nil {
				t.Fatal(err)
			}
			id, epoch := leaveOpen(ctx, t, c)
			end := kmsg.NewPtrEndTxnRequest()
			end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = "tx", id, epoch+test.newer, test.commit
			end.Version = 5
			if _, err := c.intents.begin(end); err != nil {
				t.Fatal(err)
			}
			if err := c.Kill(); err != nil {
				t.Fatal(err)
			}
			writeMarkers(t, c.DataDir(), test.markers)

			c, err = Start(DataDir(c.DataDir()))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			cut := c.Recovery().Transactions
			if len(cut) != 2-test.markers || cut[0].Committed != (test.visible > 0) || cut[0].Half != (test.markers > 0) {
				t.Fatalf("the recovery tells of %+v", cut)
			}
			if got := committedRecords(ctx, t, c); got != test.visible {
				t.Fatalf("%d records are visible, want %d", got, test.visible)
			}
			// The producer must not hear that its transaction has ended in a way it may not have.
			end.ProducerEpoch = epoch
			other, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			resp, err := end.RequestWith(ctx, other)
			if err != nil || resp.ErrorCode == 0 {
				t.Fatalf("the repeated EndTxn is answered %+v, %v; want the producer to be fenced", resp, err)
			}
		})
	}
}

// leaveOpen writes a record to both partitions of "lines" in a transaction that does not end, and returns its producer.
func leaveOpen(ctx context.Context, t *testing.T, c *Cluster) (id int64, epoch int16) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.TransactionalID("tx"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for p := range int32(2) {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "lines", Partition: p, Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	id, epoch, err = cl.ProducerID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return id, epoch
}

// writeMarkers ends the open transactions of so many logs of "lines", as a cluster does that is killed meanwhile.
func writeMarkers(t *testing.T, dir string, n int) {
	t.Helper()
	d := &dataDir{path: dir}
	how, err := readDecisions(d)
	if err != nil {
		t.Fatal(err)
	}
	logs, err := partitionLogs(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range logs {
		if l.topic != "lines" || n == 0 {
			continue
		}
		n--
		if err := l.recover(&Recovery{}, how); err != nil {
			t.Fatal(err)
		}
		l.decide(how)
		if err := l.end(points{}); err != nil {
			t.Fatal(err)
		}
	}
}

// committedRecords counts what a read_committed reader sees of "lines", up to a record of its own at the end.
func committedRecords(ctx context.Context, t *testing.T, c *Cluster) int {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeTopics("lines"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for p := range int32(2) {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "lines", Partition: p, Value: []byte("end")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	for ends := 0; ends < 2; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if string(r.Value) == "end" {
				ends++
			} else {
				seen++
			}
		})
	}
	return seen
}

func TestIntentSlotsAreReused(t *testing.T) {
	d, err := openDataDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.lock.Close()
	book, err := openIntents(d)
	if err != nil {
		t.Fatal(err)
	}
	defer book.close()
	end := func(id int64) *kmsg.EndTxnRequest {
		req := kmsg.NewPtrEndTxnRequest()
		req.ProducerID, req.ProducerEpoch, req.Commit = id, 3, true
		return req
	}
	for id := range int64(100) {
		done, err := book.begin(end(id))
		if err != nil {
			t.Fatal(err)
		}
		done()
	}
	if _, err := book.begin(end(7)); err != nil {
		t.Fatal(err)
	}
	if _, err := book.begin(end(8)); err != nil {
		t.Fatal(err)
	}
	if book.count != 2 {
		t.Errorf("%d slots for at most 2 producers at a time", book.count)
	}
	found, err := readIntents(d)
	if err != nil || len(found) != 2 || found[7] != (intent{7, 3, true, false}) || found[8] != (intent{8, 3, true, false}) {
		t.Errorf("the file holds %v, %v", found, err)
	}
}
