package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// load writes the input. Keyed records go where Kafka's default partitioner puts them, lines in turn to all
// partitions: the same bytes in the same partitions as the peer's load.
func load(ctx context.Context, o options, m *meter) error {
	if o.t0 == 0 {
		// brokers delete by record time, and a windowed changelog has a real retention: event time ends now
		o.t0 = time.Now().UnixMilli() - int64(o.records)*o.dtMicros/1000
	}
	in := newInput(o)
	opts := append(o.clientOptions(), o.producerOptions()...)
	opts = append(opts, kgo.RecordPartitioner(explicitOrHashed()), kgo.MaxBufferedRecords(200_000))
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := createTopics(ctx, client, o.partitions, o.in, o.out); err != nil {
		return err
	}
	began, bytes := time.Now(), int64(0)
	var failed failure
	promise := failed.promise
	for n := range o.records {
		r := &kgo.Record{Topic: o.in, Timestamp: time.UnixMilli(in.timestamp(n)), Partition: -1}
		r.Key, r.Value = in.appendRecord(nil, nil, n)
		if r.Key == nil {
			r.Partition = int32(n % uint64(o.partitions))
		}
		bytes += int64(len(r.Key) + len(r.Value))
		client.Produce(ctx, r, promise)
		if n%4096 == 0 && failed.err() != nil {
			break
		}
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	if err := failed.err(); err != nil {
		return err
	}
	m.emit(field{"ev", "loaded"}, field{"kind", o.kind}, field{"records", o.records}, field{"bytes", bytes},
		field{"seed", o.seed}, field{"t0_ms", o.t0}, field{"dt_us", o.dtMicros}, field{"seconds", time.Since(began).Seconds()})
	return nil
}

// createTopics creates topics without retention; ones that exist are left as they are.
func createTopics(ctx context.Context, client *kgo.Client, partitions int, names ...string) error {
	never := "-1"
	configs := map[string]*string{"retention.ms": &never, "retention.bytes": &never}
	answers, err := kadm.NewClient(client).CreateTopics(ctx, int32(partitions), 1, configs, names...)
	if err != nil {
		return fmt.Errorf("create topics %v: %w", names, err)
	}
	for _, a := range answers.Sorted() {
		if a.Err != nil && !errors.Is(a.Err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w: %s", a.Topic, a.Err, a.ErrMessage)
		}
	}
	return nil
}

// createRunTopics creates the sink, and for rawcount its compacted changelog.
func createRunTopics(ctx context.Context, o options) error {
	client, err := kgo.NewClient(o.clientOptions()...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := createTopics(ctx, client, o.partitions, o.out); err != nil || o.workload != "rawcount" {
		return err
	}
	compact, name := "compact", rawChangelog(o)
	configs := map[string]*string{"cleanup.policy": &compact}
	a, err := kadm.NewClient(client).CreateTopic(ctx, int32(o.partitions), 1, configs, name)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w: %s", name, err, a.ErrMessage)
	}
	return nil
}
