package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// stops are the two ways a cluster ends; what was acknowledged survives both.
var stops = map[string]func(*cluster.Cluster) error{
	"close": (*cluster.Cluster).Close,
	"kill":  (*cluster.Cluster).Kill,
}

func eachStop(t *testing.T, run func(t *testing.T, stop func(*cluster.Cluster) error)) {
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) { run(t, stop) })
	}
}

// again stops a cluster and starts another on its directory.
func again(t *testing.T, c *cluster.Cluster, stop func(*cluster.Cluster) error) *cluster.Cluster {
	t.Helper()
	dir := c.DataDir()
	if err := stop(c); err != nil {
		t.Fatal(err)
	}
	return start(t, cluster.DataDir(dir))
}

func TestRestartKeepsEverything(t *testing.T) {
	eachStop(t, func(t *testing.T, stop func(*cluster.Cluster) error) {
		c := start(t, cluster.DataDir(t.TempDir()))
		ctx := deadline(t)
		adm := kadm.NewClient(client(t, c))
		if _, err := adm.CreateTopic(ctx, 3, 1, map[string]*string{"retention.ms": kadm.StringPtr("-1")}, "made"); err != nil {
			t.Fatal(err)
		}
		before, err := adm.ListTopics(ctx)
		if err != nil {
			t.Fatal(err)
		}
		produce(t, client(t, c, kgo.RecordPartitioner(kgo.RoundRobinPartitioner())), "made", "v", 300)
		commit(t, adm, "plain", "made", 42)
		a, b := pair(t, c, "statics")
		p := newTxnProducer(t, c, "tx")
		id, epoch, err := p.cl.ProducerID(ctx)
		if err != nil {
			t.Fatal(err)
		}

		c2 := again(t, c, stop)
		adm = kadm.NewClient(client(t, c2))
		after, err := adm.ListTopics(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if before["made"].ID != after["made"].ID || len(after["made"].Partitions) != 3 {
			t.Errorf("topic was %+v and is %+v", before["made"], after["made"])
		}
		configs, err := adm.DescribeTopicConfigs(ctx, "made")
		if err != nil {
			t.Fatal(err)
		}
		if !hasConfig(configs, "retention.ms", "-1") {
			t.Errorf("topic configs after the restart: %+v", configs)
		}
		consume(t, client(t, c2, fromStart("made")...), 300)
		if got := fetched(t, adm, "plain"); !cmp.Equal(got, map[string]int64{"made-0": 42}) {
			t.Errorf("offsets after the restart: %v", got)
		}
		for _, m := range []*member{a, b} {
			m.cl = client(t, c2)
			if err := m.heartbeat(ctx); err != nil {
				t.Errorf("heartbeat of %s, which never left: %v", *m.instance, err)
			}
		}
		restart(t, c2, b)
		p2 := newTxnProducer(t, c2, "tx")
		id2, epoch2, err := p2.cl.ProducerID(ctx)
		if err != nil || id2 != id || epoch2 <= epoch {
			t.Errorf("producer id %d epoch %d after %d epoch %d, %v", id2, epoch2, id, epoch, err)
		}
	})
}

func hasConfig(configs kadm.ResourceConfigs, key, value string) bool {
	for _, r := range configs {
		for _, c := range r.Configs {
			if c.Key == key && c.MaybeValue() == value {
				return true
			}
		}
	}
	return false
}

// TestOpenTransactionAcrossRestart: an orderly stop keeps a transaction open, and its producer can commit it, offsets
// included; a kill aborts it, says so, and it stays aborted however often the cluster is killed afterwards.
func TestOpenTransactionAcrossRestart(t *testing.T) {
	eachStop(t, func(t *testing.T, stop func(*cluster.Cluster) error) {
		c := start(t, cluster.DataDir(t.TempDir()), cluster.Topic("lines", 1))
		ctx := deadline(t)
		p := newTxnProducer(t, c, "tx")
		p.begin(t, "first")
		if err := p.offset(ctx, 1); err != nil {
			t.Fatal(err)
		}
		p.end(t, kgo.TryCommit)
		p.begin(t, "open")
		if err := p.offset(ctx, 2); err != nil {
			t.Fatal(err)
		}
		id, epoch, err := p.cl.ProducerID(ctx)
		if err != nil {
			t.Fatal(err)
		}

		c = again(t, c, stop)
		rec := c.Recovery()
		if rec.Clean {
			p.wantUnstable(t, client(t, c))
		} else {
			want := []cluster.CutTxn{
				{Topic: "__consumer_offsets", ProducerID: id, ProducerEpoch: epoch},
				{Topic: "lines", ProducerID: id, ProducerEpoch: epoch},
			}
			if !cmp.Equal(rec.Transactions, want) {
				t.Errorf("the recovery tells of %+v, want %+v", rec.Transactions, want)
			}
			p.wantStable(t, client(t, c), 1)
		}
		successor := newTxnProducer(t, c, "tx")
		successor.begin(t, "second")
		if err := successor.offset(ctx, 3); err != nil {
			t.Fatal(err)
		}
		successor.end(t, kgo.TryCommit)

		c = again(t, c, stop)
		c = again(t, c, stop)
		if cut := c.Recovery().Transactions; len(cut) != 0 {
			t.Errorf("a transaction that was aborted is found open again: %+v", cut)
		}
		successor.wantStable(t, client(t, c), 3)
		reader := client(t, c, append(fromStart("lines"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
		produce(t, client(t, c), "lines", "end", 1)
		if got := fmt.Sprint(consume(t, reader, 3)); got != "[first0 second0 end0]" {
			t.Errorf("read committed %s", got)
		}
	})
}

// TestTransactionGoesOnAfterOrderlyRestart is the client's side of it: the same client, the same transaction.
func TestTransactionGoesOnAfterOrderlyRestart(t *testing.T) {
	dir := t.TempDir()
	c := start(t, cluster.DataDir(dir), cluster.Topic("lines", 1))
	addr := c.Brokers()[0]
	ctx := deadline(t)
	p := newTxnProducer(t, c, "tx")
	p.begin(t, "before")
	if err := p.offset(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = start(t, cluster.DataDir(dir), cluster.Listen(addr))
	if err := p.offset(ctx, 2); err != nil {
		t.Fatal(err)
	}
	p.end(t, kgo.TryCommit)
	p.wantStable(t, client(t, c), 2)
	c = again(t, c, (*cluster.Cluster).Kill) // and it is in the log, not only in memory
	p.wantStable(t, client(t, c), 2)
}

// TestTornWriteIsCut plants what a kill between and within the two writes of a batch leaves.
func TestTornWriteIsCut(t *testing.T) {
	tear := map[string]func(t *testing.T, segment string){
		"half a batch": func(t *testing.T, segment string) {
			appendTo(t, segment+".dat", lastBatch(t, segment)[:50])
		},
		"a batch without index entry": func(t *testing.T, segment string) {
			appendTo(t, segment+".dat", lastBatch(t, segment))
		},
		"garbage": func(t *testing.T, segment string) {
			appendTo(t, segment+".dat", []byte(strings.Repeat("\xff", 200)))
		},
		"half an index entry": func(t *testing.T, segment string) {
			appendTo(t, segment+".dat", lastBatch(t, segment))
			appendTo(t, segment+".idx", make([]byte, 7))
		},
	}
	for name, tear := range tear {
		t.Run(name, func(t *testing.T) {
			c := start(t, cluster.DataDir(t.TempDir()), cluster.Topic("lines", 1))
			produce(t, client(t, c), "lines", "a", 3)
			if err := c.Kill(); err != nil {
				t.Fatal(err)
			}
			tear(t, filepath.Join(c.DataDir(), "partitions", "lines-0", "0"))
			c = start(t, cluster.DataDir(c.DataDir()))
			if c.Recovery().TornBytes == 0 {
				t.Error("the start did not tell of the torn bytes")
			}
			produce(t, client(t, c), "lines", "b", 1)
			if got := fmt.Sprint(consume(t, client(t, c, fromStart("lines")...), 4)); got != "[a0 a1 a2 b0]" {
				t.Errorf("the log holds %s", got)
			}
			c = again(t, c, (*cluster.Cluster).Kill)
			if torn := c.Recovery().TornBytes; torn != 0 {
				t.Errorf("after the repair, %d bytes are torn again", torn)
			}
		})
	}
}

func lastBatch(t *testing.T, segment string) []byte {
	t.Helper()
	raw, err := os.ReadFile(segment + ".dat")
	if err != nil {
		t.Fatal(err)
	}
	return raw // the test's log is one batch
}

func appendTo(t *testing.T, name string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
}

// TestProducerGoesOnAfterOldStop: sequence numbers that an earlier orderly stop wrote down must not meet a producer
// that has gone on since.
func TestProducerGoesOnAfterOldStop(t *testing.T) {
	dir := t.TempDir()
	c := start(t, cluster.DataDir(dir), cluster.Topic("lines", 1))
	addr := c.Brokers()[0]
	cl := client(t, c, kgo.StopProducerOnDataLossDetected())
	produce(t, cl, "lines", "a", 1)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(dir, "seq_windows.json")
	old, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	c = start(t, cluster.DataDir(dir), cluster.Listen(addr))
	for range 3 { // each a batch of its own
		produce(t, cl, "lines", "b", 1)
	}
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(written, old, 0o600); err != nil { // a killed process leaves it
		t.Fatal(err)
	}
	c = start(t, cluster.DataDir(dir), cluster.Listen(addr))
	produce(t, cl, "lines", "c", 1)
	if got := fmt.Sprint(consume(t, client(t, c, fromStart("lines")...), 5)); got != "[a0 b0 b0 b0 c0]" {
		t.Errorf("the log holds %s", got)
	}
}

// TestEmptiedLogKeepsItsOffsets: after DeleteRecords of everything, as a stream application does with its repartition
// topics, the offsets must not begin anew, or committed ones would point beyond the log.
func TestEmptiedLogKeepsItsOffsets(t *testing.T) {
	eachStop(t, func(t *testing.T, stop func(*cluster.Cluster) error) {
		c := start(t, cluster.DataDir(t.TempDir()), cluster.Topic("lines", 2))
		ctx := deadline(t)
		cl := client(t, c, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		adm := kadm.NewClient(cl)
		produce(t, cl, "lines", "a", 10)
		purge := kadm.Offsets{}
		purge.AddOffset("lines", 0, 10, -1)
		purge.AddOffset("lines", 1, 0, -1)
		if _, err := adm.DeleteRecords(ctx, purge); err != nil {
			t.Fatal(err)
		}
		c = again(t, c, stop)
		c = again(t, c, stop)
		cl = client(t, c, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		adm = kadm.NewClient(cl)
		for p, want := range []int64{10, 0} {
			starts, err := adm.ListStartOffsets(ctx, "lines")
			if err != nil {
				t.Fatal(err)
			}
			ends, err := adm.ListEndOffsets(ctx, "lines")
			if err != nil {
				t.Fatal(err)
			}
			first, _ := starts.Lookup("lines", int32(p))
			next, _ := ends.Lookup("lines", int32(p))
			if first.Offset != want || next.Offset != want {
				t.Errorf("partition %d is %d..%d, want %d..%d", p, first.Offset, next.Offset, want, want)
			}
		}
		produce(t, cl, "lines", "b", 1)
		c = again(t, c, stop)
		reader := client(t, c, fromStart("lines")...)
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		if r := fetches.Records()[0]; r.Offset != 10 || string(r.Value) != "b0" {
			t.Errorf("the next record is %q at %d, want b0 at 10", r.Value, r.Offset)
		}
	})
}

func TestDataDirRefusals(t *testing.T) {
	c := start(t, cluster.DataDir(t.TempDir()))
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, refused := range map[string]struct {
		opt  cluster.Option
		want string
	}{
		"in use":          {cluster.DataDir(c.DataDir()), fmt.Sprintf("is in use by process %d, listening on %s", os.Getpid(), c.Brokers()[0])},
		"somebody else's": {cluster.DataDir(foreign), "holds thesis.tex"},
		"address in use":  {cluster.Listen(c.Brokers()[0]), "address already in use"},
		"bad address":     {cluster.Listen("nowhere"), "missing port"},
		"bad topic":       {cluster.Topic("t", 0), "at least 1"},
	} {
		t.Run(name, func(t *testing.T) {
			other, err := cluster.Start(refused.opt)
			if err == nil {
				other.Close()
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), refused.want) {
				t.Fatalf("error %q does not say %q", err, refused.want)
			}
		})
	}
}

// TestFailedStartKeepsTheOrderlyStop: a start that fails because of its address must not make the next one recover.
func TestFailedStartKeepsTheOrderlyStop(t *testing.T) {
	holder := start(t)
	c := start(t, cluster.DataDir(t.TempDir()))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Start(cluster.DataDir(c.DataDir()), cluster.Listen(holder.Brokers()[0])); err == nil {
		t.Fatal("started on an address in use")
	}
	c = start(t, cluster.DataDir(c.DataDir()))
	if rec := c.Recovery(); !rec.Clean {
		t.Fatalf("recovery %+v, want a clean one", rec)
	}
}

func TestTemporaryDataIsRemoved(t *testing.T) {
	c := start(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.DataDir()); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%s is still there: %v", c.DataDir(), err)
	}
	if _, err := kadm.NewClient(client(t, c, kgo.RetryTimeout(1), kgo.RequestRetries(0))).ListTopics(deadline(t)); err == nil {
		t.Fatal("a closed cluster answers")
	}
}
