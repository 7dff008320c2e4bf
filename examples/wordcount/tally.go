package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/streams/serde"
)

// tally follows the topic counts and so knows the last count of every word.
type tally struct {
	client *kgo.Client

	mu     sync.Mutex
	counts map[string]int64
	sum    int64
}

// run follows the topic until ctx ends.
func (t *tally) run(ctx context.Context) error {
	for {
		fetches := t.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("read %s: %w", countsTopic, err)
		}
		if err := t.add(fetches); err != nil {
			return err
		}
	}
}

func (t *tally) add(fetches kgo.Fetches) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range fetches.RecordsAll() {
		n, err := serde.Int64.Decode(r.Value)
		if err != nil {
			return fmt.Errorf("%s/%d at offset %d is no count: %w", r.Topic, r.Partition, r.Offset, err)
		}
		t.sum += n - t.counts[string(r.Key)]
		t.counts[string(r.Key)] = n
	}
	return nil
}

// total is the number of words counted.
func (t *tally) total() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sum
}

type wordCount struct {
	word string
	n    int64
}

// top returns the n most frequent words, and how many there are at all.
func (t *tally) top(n int) (list []wordCount, distinct int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for word, n := range t.counts {
		list = append(list, wordCount{word, n})
	}
	slices.SortFunc(list, func(a, b wordCount) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.word, b.word)) })
	return list[:min(n, len(list))], len(t.counts)
}

// wordsIn counts the words that are in the topic lines already, so that a run on a cluster with earlier input
// knows when everything is counted.
func wordsIn(ctx context.Context, brokers []string) (int64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(linesTopic), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	ends, err := adm.ListEndOffsets(ctx, linesTopic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("ends of %s: %w", linesTopic, err)
	}
	left := map[int32]int64{}
	ends.Each(func(e kadm.ListedOffset) {
		if e.Offset > 0 {
			left[e.Partition] = e.Offset
		}
	})
	total := int64(0)
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return 0, fmt.Errorf("read %s: %w", linesTopic, err)
		}
		for r := range fetches.RecordsAll() {
			total += int64(len(words(string(r.Value))))
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		}
	}
	return total, nil
}
