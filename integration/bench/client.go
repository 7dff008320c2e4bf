package main

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// clientOptions are those of every client of the hand-written workloads.
func (o *options) clientOptions() []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(strings.Split(o.bootstrap, ",")...), kgo.ClientID(o.appID)}
}

// producerOptions are the settings that the peer's producer has.
func (o *options) producerOptions() []kgo.Opt {
	return []kgo.Opt{
		kgo.ProducerLinger(o.linger),
		kgo.ProducerBatchMaxBytes(int32(o.batchBytes)),
		kgo.ProducerBatchCompression(codec(o.compression)),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.MaxBufferedRecords(100_000),
	}
}

// consumerOptions are the settings that the peer's consumer has. The wait is bounded because a fetch that
// waits also delays what the client is told meanwhile.
func (o *options) consumerOptions() []kgo.Opt {
	isolation := kgo.ReadUncommitted()
	if o.exactlyOnce() {
		isolation = kgo.ReadCommitted()
	}
	return []kgo.Opt{
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxBytes(int32(o.fetchMaxBytes)),
		kgo.FetchMaxPartitionBytes(int32(o.partitionFetchBytes)),
		kgo.FetchMinBytes(1),
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.FetchIsolationLevel(isolation),
	}
}

func codec(name string) kgo.CompressionCodec {
	switch name {
	case "gzip":
		return kgo.GzipCompression()
	case "snappy":
		return kgo.SnappyCompression()
	case "lz4":
		return kgo.Lz4Compression()
	case "zstd":
		return kgo.ZstdCompression()
	default:
		return kgo.NoCompression()
	}
}

// explicitOrHashed sends a record where it says, and one without partition (-1) where Kafka's default
// partitioner sends its key.
func explicitOrHashed() kgo.Partitioner {
	hashed := kgo.StickyKeyPartitioner(nil)
	return kgo.BasicConsistentPartitioner(func(topic string) func(*kgo.Record, int) int {
		byKey := hashed.ForTopic(topic)
		return func(r *kgo.Record, n int) int {
			if r.Partition >= 0 {
				return int(r.Partition)
			}
			return byKey.Partition(r, n)
		}
	})
}

// failure is the first error of many produced records. promise is shared by all of them: a closure for each
// would cost an allocation a record.
type failure struct{ first atomic.Pointer[error] }

func (f *failure) promise(_ *kgo.Record, err error) {
	if err != nil {
		f.first.CompareAndSwap(nil, &err)
	}
}

func (f *failure) err() error {
	if p := f.first.Load(); p != nil {
		return *p
	}
	return nil
}
