package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/gen"
)

const (
	seed         = 11
	lineWords    = 10
	preloadLines = 40_000
	preloadWords = 50_000 // different words: the state
	feedLines    = 50     // a second, of few words: what a commit changes is small against the state
	feedWords    = 300
)

// input makes the lines: number n is the same whenever it is asked for.
type input struct {
	preload, feed       *gen.Picker
	preloadVoc, feedVoc [][]byte
	buf                 []byte
}

func newInput() *input {
	vocabulary := gen.Vocabulary(seed, preloadWords)
	return &input{
		preload: gen.NewPicker(preloadWords, false), preloadVoc: vocabulary,
		feed: gen.NewPicker(feedWords, false), feedVoc: vocabulary[:feedWords],
	}
}

// line is line n, valid until the next call.
func (in *input) line(n int64) []byte {
	picker, vocabulary := in.feed, in.feedVoc
	if n < preloadLines {
		picker, vocabulary = in.preload, in.preloadVoc
	}
	in.buf = gen.AppendLine(in.buf[:0], seed, uint64(n), lineWords, picker, vocabulary)
	return in.buf
}

// replay counts the words of the first n lines in one thread.
func replay(n int64) map[string]uint64 {
	in, total := newInput(), map[string]uint64{}
	for i := range n {
		for word := range bytes.SplitSeq(in.line(i), []byte(" ")) {
			total[string(word)]++
		}
	}
	return total
}

// feeder writes lines, each acknowledged once.
type feeder struct {
	client *kgo.Client
	in     *input
	next   int64 // the next line; the goroutine that feeds owns it
	failed atomic.Pointer[error]
}

func (f *feeder) produced(_ *kgo.Record, err error) {
	if err != nil {
		f.failed.CompareAndSwap(nil, &err)
	}
}

func (f *feeder) produce(ctx context.Context, n int64) {
	for range n {
		f.client.Produce(ctx, &kgo.Record{Topic: lines, Value: bytes.Clone(f.in.line(f.next))}, f.produced)
		f.next++
	}
}

func (f *feeder) flush(ctx context.Context) error {
	if err := f.client.Flush(ctx); err != nil {
		return fmt.Errorf("write lines: %w", err)
	}
	if err := f.failed.Load(); err != nil {
		return fmt.Errorf("write lines: %w", *err)
	}
	return nil
}

// steady feeds at an even rate until ctx ends; the returned function ends it and says how many lines there are.
func (f *feeder) steady(ctx context.Context) (stop func() (int64, error)) {
	feeding, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second / feedLines)
		defer tick.Stop()
		for {
			select {
			case <-feeding.Done():
				return
			case <-tick.C:
				f.produce(ctx, 1)
			}
		}
	}()
	return func() (int64, error) {
		cancel()
		<-ended
		return f.next, errors.Join(f.flush(ctx))
	}
}
