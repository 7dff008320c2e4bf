//go:build unix

package cluster_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The benchmarks run once through the front and once against bare kfake, so that a run shows what the front costs.
// Client and broker share this process: cpu-ns/op is what both take together, and unlike ns/op it says something on a
// machine that has other things to do.

// measure runs the measured part.
func measure(b *testing.B, run func()) {
	b.Helper()
	before := cpuTime(b)
	b.ResetTimer()
	run()
	b.StopTimer()
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

func cpuTime(b *testing.B) int64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func eachBroker(b *testing.B, run func(b *testing.B, brokers []string)) {
	b.Run("front", func(b *testing.B) {
		c := start(b, cluster.DataDir(b.TempDir()), cluster.Topic("bench", 4))
		run(b, c.Brokers())
	})
	b.Run("bare", func(b *testing.B) {
		k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(b.TempDir()), kfake.SeedTopics(4, "bench"))
		if err != nil {
			b.Fatal(err)
		}
		defer k.Close()
		run(b, k.ListenAddrs())
	})
}

const benchValue = 100 // bytes

// benchClient keeps batches uncompressed: compression would hide the cost of moving bytes.
func benchClient(b *testing.B, brokers []string, opts ...kgo.Opt) *kgo.Client {
	b.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(brokers...), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(50_000),
	}, opts...)...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(cl.Close)
	return cl
}

func feed(b *testing.B, cl *kgo.Client, n int) {
	b.Helper()
	ctx := b.Context()
	var failed error
	promise := func(_ *kgo.Record, err error) {
		if err != nil {
			failed = err
		}
	}
	for i := range n {
		cl.Produce(ctx, &kgo.Record{Topic: "bench", Key: fmt.Append(nil, i&1023), Value: make([]byte, benchValue)}, promise)
	}
	if err := cl.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	if failed != nil {
		b.Fatal(failed)
	}
}

func BenchmarkProduce(b *testing.B) {
	eachBroker(b, func(b *testing.B, brokers []string) {
		cl := benchClient(b, brokers)
		b.SetBytes(benchValue)
		feed(b, cl, 1000)
		measure(b, func() { feed(b, cl, b.N) })
	})
}

func BenchmarkConsume(b *testing.B) {
	eachBroker(b, func(b *testing.B, brokers []string) {
		feed(b, benchClient(b, brokers), b.N)
		cl := benchClient(b, brokers, fromStart("bench")...)
		b.SetBytes(benchValue)
		measure(b, func() {
			for n := 0; n < b.N; {
				fetches := cl.PollFetches(b.Context())
				if err := fetches.Err(); err != nil {
					b.Fatal(err)
				}
				n += fetches.NumRecords()
			}
		})
	})
}

// BenchmarkRoundTrip is the latency of one acknowledged record, where the front's cost a frame shows most.
func BenchmarkRoundTrip(b *testing.B) {
	eachBroker(b, func(b *testing.B, brokers []string) {
		cl := benchClient(b, brokers, kgo.ProducerLinger(0))
		record := func() *kgo.Record { return &kgo.Record{Topic: "bench", Value: make([]byte, benchValue)} }
		measure(b, func() {
			for range b.N {
				if err := cl.ProduceSync(b.Context(), record()).FirstErr(); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}
