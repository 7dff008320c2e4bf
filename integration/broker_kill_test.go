package integration

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/check"
	"github.com/millrace-io/millrace/integration/kafka"
	"github.com/millrace-io/millrace/streams"
)

// P2 for the brokers: a real Kafka is killed with SIGKILL under two processes with exactly-once, and started again on its
// directory. They go on by themselves, with the same tasks in the same generation, and what they leave is the replay. The
// program chaos does the same to the embedded cluster, at chosen points.
func TestKilledBrokerUnderExactlyOnce(t *testing.T) {
	if os.Getenv("KAFKA_BOOTSTRAP") == "" {
		t.Skip("KAFKA_BOOTSTRAP is not set: a real broker is started and killed in make test-kafka only")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	broker := ownBroker(t, ctx)
	j, in := newJob(t), newInput()
	client := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	follower := j.follow(t)
	workers := []*worker{newWorker(t, j, "wc-0", streams.ExactlyOnce), newWorker(t, j, "wc-1", streams.ExactlyOnce)}
	for _, w := range workers {
		w.cfg.TransactionTimeout = brokerAway
		w.start(t)
	}
	before := settled(t, ctx, workers...)
	for _, away := range []time.Duration{0, 2 * time.Second} {
		busy := in.fed() + 500
		stop := in.feedOn(client, j)
		if err := follower.Await(ctx, busy); err != nil {
			t.Fatal(err)
		}
		if err := broker.Kill(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(away) // how long nobody answers is what the test is about
		broker = startBroker(t, ctx, kafka.Config{Name: brokerName})
		if err := stop(ctx); err != nil {
			t.Fatalf("write lines: %v", err)
		}
		if err := follower.Await(ctx, in.fed()); err != nil {
			t.Fatalf("%v\n%s\n%s", err, workers[0].Tail(20), workers[1].Tail(20))
		}
	}
	if after := settled(t, ctx, workers...); !after.Equal(before) {
		t.Errorf("before the kills: %+v, after: %+v", before, after)
	}
	// The lines are replayed as they are in the log: a producer without transactions may have written some twice.
	lines, err := check.Read(ctx, j.Lines, j.options()...)
	if err == nil {
		err = check.NothingMissing(j.Lines, lines, in.written())
	}
	if err != nil {
		t.Fatal(err)
	}
	words := wordsOf(lines)
	if err := follower.Await(ctx, uint64(words.Len())); err != nil {
		t.Fatal(err)
	}
	for _, w := range workers {
		if err := w.Stop(patience); err != nil {
			t.Fatal(err)
		}
	}
	j.compareWords(t, words)
}

const (
	brokerName = "killed"
	// brokerAway is longer than any restart of the broker. Kafka 4.4 ends transactions that have timed out meanwhile while it
	// starts, and takes partitions that it does not know yet for deleted ones: they get no marker, and the next commit of the
	// same producer commits what was aborted.
	brokerAway = 5 * time.Minute
)

// ownBroker starts a broker that the test may kill, and lets the test use it in place of the common one.
func ownBroker(t *testing.T, ctx context.Context) *kafka.Broker {
	t.Helper()
	b := startBroker(t, ctx, kafka.Config{Name: brokerName, Fresh: true})
	common := bootstrap
	bootstrap = []string{b.Addr()}
	t.Cleanup(func() { bootstrap = common })
	return b
}

func startBroker(t *testing.T, ctx context.Context, cfg kafka.Config) *kafka.Broker {
	t.Helper()
	b, err := kafka.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Kill(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// feedOn writes lines until stop, which returns when all are acknowledged.
func (in *input) feedOn(client *kgo.Client, j job) (stop func(context.Context) error) {
	done := make(chan struct{})
	var feeding sync.WaitGroup
	var mu sync.Mutex
	var failed error
	feeding.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			client.Produce(context.Background(), in.record(j), func(_ *kgo.Record, err error) {
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, err)
			})
		}
	})
	return func(ctx context.Context) error {
		close(done)
		feeding.Wait()
		err := client.Flush(ctx)
		mu.Lock()
		defer mu.Unlock()
		return errors.Join(err, failed)
	}
}
