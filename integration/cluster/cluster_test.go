package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// start runs a cluster for the test.
func start(t testing.TB, opts ...cluster.Option) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// client connects to a cluster for the test.
func client(t testing.TB, c *cluster.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Brokers()...), kgo.FetchMaxWait(200 * time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// deadline bounds what a test waits for; nothing in it takes that long.
func deadline(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// produce sends n records "<prefix>0", "<prefix>1", … and waits for their acknowledgement.
func produce(t testing.TB, cl *kgo.Client, topic, prefix string, n int) {
	t.Helper()
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "%s%d", prefix, i)}
	}
	if err := cl.ProduceSync(deadline(t), records...).FirstErr(); err != nil {
		t.Fatalf("produce to %s: %v", topic, err)
	}
}

// consume reads until it has n records and returns their values.
func consume(t testing.TB, cl *kgo.Client, n int) []string {
	t.Helper()
	ctx := deadline(t)
	var values []string
	for len(values) < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d of %d records: %v", len(values), n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}

func fromStart(topics ...string) []kgo.Opt {
	return []kgo.Opt{kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
}

func TestProduceAndFetch(t *testing.T) {
	c := start(t, cluster.Topic("lines", 1))
	produce(t, client(t, c), "lines", "v", 1000)
	got := consume(t, client(t, c, fromStart("lines")...), 1000)
	for i, v := range got {
		if want := fmt.Sprintf("v%d", i); v != want {
			t.Fatalf("record %d is %q, want %q", i, v, want)
		}
	}
}

func TestTransactionCommitAndAbort(t *testing.T) {
	c := start(t, cluster.Topic("lines", 1))
	cl := client(t, c, kgo.TransactionalID("tx"))
	for i, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, cl, "lines", fmt.Sprintf("t%d-", i), 2)
		if err := cl.EndTransaction(deadline(t), commit); err != nil {
			t.Fatal(err)
		}
	}
	reader := client(t, c, append(fromStart("lines"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
	got := fmt.Sprint(consume(t, reader, 4))
	if want := "[t0-0 t0-1 t2-0 t2-1]"; got != want {
		t.Fatalf("read committed %s, want %s", got, want)
	}
}

// TestBrokerConfigsTellTheCoordinatorsBounds: clients quote them when a session time-out is refused.
func TestBrokerConfigsTellTheCoordinatorsBounds(t *testing.T) {
	c := start(t, cluster.InitialRebalanceDelay(150*time.Millisecond))
	configs, err := kadm.NewClient(client(t, c)).DescribeBrokerConfigs(deadline(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"group.min.session.timeout.ms":     "6000",
		"group.max.session.timeout.ms":     "1800000",
		"group.initial.rebalance.delay.ms": "150",
		"log.retention.ms":                 "-1",
	} {
		if !hasConfig(configs, key, value) {
			t.Errorf("DescribeConfigs does not say %s=%s", key, value)
		}
	}
}
