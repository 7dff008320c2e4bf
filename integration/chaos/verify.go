package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/check"
)

const (
	repartition = appID + "-" + store + "-repartition"
	changelog   = appID + "-" + store + "-changelog"
)

// verify waits until the first n lines are counted and compares everything that is left of them with the replay.
func (s *stage) verify(ctx context.Context, n uint64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, countTimeout, fmt.Errorf("not within %v", countTimeout))
	defer cancel()
	if err := s.ready(ctx); err != nil {
		return err
	}
	words := s.feed.wanted(n)
	if err := s.counted(ctx, words); err != nil {
		return err
	}
	topics, err := s.read(ctx, lines, repartition, counts, changelog)
	if err != nil {
		return err
	}
	if err := check.InOrder(lines, topics[lines], s.feed.written(n)); err != nil {
		return err
	}
	logged, err := check.LastCounts(topics[changelog])
	if err != nil {
		return err
	}
	totals := check.Totals(words)
	if !s.exact {
		return errors.Join(check.NothingMissing(repartition, topics[repartition], words), s.awaitState(ctx, check.NothingBelow, totals))
	}
	return errors.Join(
		check.AsMultiset(repartition, topics[repartition], words),
		check.InOrder(counts, topics[counts], check.RunningCounts(topics[repartition])),
		check.Tables(changelog, logged, totals),
		s.awaitState(ctx, check.Tables, totals))
}

// counted waits until all words are counted.
func (s *stage) counted(ctx context.Context, words check.Topic) (err error) {
	if s.exact {
		err = s.follower.Await(ctx, uint64(words.Len()))
	} else {
		err = s.follower.AwaitAll(ctx, check.Totals(words))
	}
	for _, w := range s.workers {
		if err != nil {
			err = fmt.Errorf("%w; the end of the log of %s:\n%s", err, w.name, w.Tail(10))
		}
	}
	return err
}

// read reads topics that nobody writes to any more. The last transaction may still be ending, so an open one is
// waited for.
func (s *stage) read(ctx context.Context, names ...string) (map[string]check.Topic, error) {
	topics := map[string]check.Topic{}
	for _, name := range names {
		err := s.workers[0].Await(ctx, "end of the last transaction in "+name, func() (done bool, err error) {
			topics[name], err = check.Read(ctx, name, kgo.SeedBrokers(s.broker))
			return err == nil, err
		})
		if err != nil {
			return nil, err
		}
	}
	return topics, nil
}

// awaitState waits until queries see what is wanted: they see it a moment after readers of the sink do.
func (s *stage) awaitState(ctx context.Context, compare func(name string, got, want map[string]uint64) error, want map[string]uint64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stateTimeout, fmt.Errorf("not within %v", stateTimeout))
	defer cancel()
	return s.workers[0].Await(ctx, "state as wanted", func() (bool, error) {
		state, err := s.state(ctx)
		if err == nil {
			err = compare("the state", state, want)
		}
		return err == nil, err
	})
}

// state asks the word counts for what a query sees.
func (s *stage) state(ctx context.Context) (map[string]uint64, error) {
	all := map[string]uint64{}
	for _, w := range s.workers {
		state, err := w.state(ctx)
		if err != nil {
			return nil, err
		}
		for word, n := range state {
			if _, twice := all[word]; twice {
				return nil, fmt.Errorf("%q is in the state of two processes", word)
			}
			all[word] = n
		}
	}
	return all, nil
}

func (w *worker) state(ctx context.Context) (map[string]uint64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+string(w.rest)+"/dump", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return nil, fmt.Errorf("the state of %s: %s: %s", w.name, resp.Status, text)
	}
	state := map[string]uint64{}
	return state, json.NewDecoder(resp.Body).Decode(&state)
}
