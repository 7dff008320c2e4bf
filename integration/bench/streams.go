package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/window"
)

// runStreams runs a workload on the framework until the watch ends, and closes it: what was processed is
// committed then, so that the sink can be checked.
func runStreams(ctx context.Context, o options, m *meter) error {
	app, err := streams.New(workloadTopology(o, m), o.config(m))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan error, 1)
	go func() {
		err := app.Run(ctx)
		if err != nil {
			stop(err) // the watch must not wait for records that nobody processes
		}
		ended <- err
	}()
	err = m.watch(ctx)
	closing := time.Now()
	stop(nil)
	err = errors.Join(err, <-ended)
	m.emit(field{"ev", "closed"}, field{"clean", err == nil}, field{"close_ms", float64(time.Since(closing)) / 1e6})
	m.progress("final")
	return err
}

// config gives the framework the settings that the peer has. The block cache holds the memtables there, so
// it alone is the memory for state.
func (o *options) config(m *meter) streams.Config {
	cfg := streams.Config{
		AppID:           o.appID,
		ClientID:        o.instance,
		Brokers:         strings.Split(o.bootstrap, ","),
		StateDir:        o.stateDir,
		Threads:         o.threads,
		CommitInterval:  o.commit,
		SessionTimeout:  o.session,
		BufferedRecords: o.pollRecords,
		FetchMaxBytes:   int32(o.fetchMaxBytes),
		Compression:     o.compression,
		Linger:          o.linger,
		StateMemory:     o.cacheMB << 20,
		Logger:          slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		KafkaOptions: []kgo.Opt{
			kgo.ProducerBatchMaxBytes(int32(o.batchBytes)),
			kgo.FetchMaxPartitionBytes(int32(o.partitionFetchBytes)),
		},
		OnStateChange: func(from, to streams.State) {
			m.emit(field{"ev", "state"}, field{"from", from.String()}, field{"to", to.String()}, field{"t_ms", sinceStart()})
		},
	}
	if o.exactlyOnce() {
		cfg.Guarantee = streams.ExactlyOnce
	}
	return cfg
}

// workloadTopology is the peer's topology of the same name. Keys and values are bytes on both sides.
func workloadTopology(o options, m *meter) *streams.Builder {
	b := streams.NewBuilder()
	in := b.Stream(o.in, serde.Bytes, serde.Bytes).Peek(func([]byte, []byte) { m.in.add(1) })
	counted := func([]byte, int64) { m.out.add(1) }
	switch o.workload {
	case "pass":
		in.MapValues(touched).
			Peek(func([]byte, []byte) { m.out.add(1) }).
			To(o.out, serde.Bytes, serde.Bytes)
	case "count":
		in.GroupByKey().
			Count("counts").
			ToStream().
			Peek(counted).
			To(o.out, serde.Bytes, serde.Int64)
	case "windowed":
		in.GroupByKey().
			WindowedBy(window.Tumbling(o.window).Grace(o.grace)).
			Count("win-counts").
			ToStream(windowKey).
			Peek(counted).
			To(o.out, serde.Bytes, serde.Int64)
	case "wordcount":
		in.FlatMapValues(split).
			GroupBy(func(_, word []byte) []byte { return word }, serde.Bytes, streams.Named("by-word")).
			Count("counts").
			ToStream().
			Peek(counted).
			To(o.out, serde.Bytes, serde.Int64)
	default:
		panic(fmt.Sprintf("bench: no topology for workload %q", o.workload)) // runWorkload asks for known ones only
	}
	return b
}

// touched is the value in a copy with its first byte flipped: the cheapest honest transformation.
func touched(value []byte) []byte {
	own := bytes.Clone(value)
	touch(own)
	return own
}

// split cuts a line at single spaces; empty pieces are dropped, case is kept.
func split(line []byte) [][]byte {
	words := make([][]byte, 0, 16)
	for word := range bytes.SplitSeq(line, []byte(" ")) {
		if len(word) > 0 {
			words = append(words, word)
		}
	}
	return words
}

func windowKey(k window.Key[[]byte]) []byte {
	return appendWindowKey(append(make([]byte, 0, len(k.Key)+9), k.Key...), k.Start)
}
