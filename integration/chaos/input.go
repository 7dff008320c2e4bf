package main

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/check"
	"github.com/millrace-io/millrace/integration/gen"
)

const (
	lineWords  = 5
	vocabulary = 3000
	perTick    = 10 // lines
	tick       = 40 * time.Millisecond
	firstTime  = int64(1_700_000_000_000) // event time of line 0, milliseconds
)

// feed writes lines at an even rate while it is not paused. Line n is a function of the seed and n.
type feed struct {
	client *kgo.Client
	seed   uint64
	picker *gen.Picker
	words  [][]byte
	next   uint64 // the goroutine that feeds owns it; others after pause
	failed atomic.Pointer[error]
	stop   func()
}

func newFeed(client *kgo.Client, seed uint64) *feed {
	return &feed{client: client, seed: seed, picker: gen.NewPicker(vocabulary, true), words: gen.Vocabulary(seed, vocabulary), stop: func() {}}
}

func (f *feed) line(n uint64) []byte {
	return gen.AppendLine(nil, f.seed, n, lineWords, f.picker, f.words)
}

func timeOf(n uint64) int64 { return firstTime + int64(n) }

// resume feeds until pause.
func (f *feed) resume(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	f.stop = func() { cancel(); <-ended }
	go func() {
		defer close(ended)
		ticks := time.NewTicker(tick)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			for range perTick {
				r := &kgo.Record{Topic: lines, Partition: int32(f.next % partitions), Value: f.line(f.next), Timestamp: time.UnixMilli(timeOf(f.next))}
				f.client.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
					if err != nil {
						f.failed.CompareAndSwap(nil, &err)
					}
				})
				f.next++
			}
		}
	}()
}

// pause ends the feeding and returns how many lines there are, all acknowledged.
func (f *feed) pause(ctx context.Context) (uint64, error) {
	f.stop()
	f.stop = func() {}
	if err := f.client.Flush(ctx); err != nil {
		return 0, fmt.Errorf("write lines: %w", err)
	}
	if err := f.failed.Load(); err != nil {
		return 0, fmt.Errorf("write lines: %w", *err)
	}
	return f.next, nil
}

// wanted is what the first n lines must leave in the repartition topic.
func (f *feed) wanted(n uint64) check.Topic {
	hashed := kgo.StickyKeyPartitioner(nil).ForTopic("")
	topic := make(check.Topic, partitions)
	for i := range n {
		for word := range bytes.SplitSeq(f.line(i), []byte(" ")) {
			p := hashed.Partition(&kgo.Record{Key: word}, partitions)
			topic[p] = append(topic[p], check.Record{Key: word, Value: word, Timestamp: timeOf(i)})
		}
	}
	return topic
}

// written is what the first n lines must leave in their own topic.
func (f *feed) written(n uint64) check.Topic {
	topic := make(check.Topic, partitions)
	for i := range n {
		p := i % partitions
		topic[p] = append(topic[p], check.Record{Value: f.line(i), Timestamp: timeOf(i)})
	}
	return topic
}
