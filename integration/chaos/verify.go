package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/check"
)

const (
	repartition = appID + "-" + store + "-repartition"
	changelog   = appID + "-" + store + "-changelog"
)

// verify waits until the first n lines are counted and compares everything that is left of them with the replay.
func (r *run) verify(ctx context.Context, n uint64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, countTimeout, fmt.Errorf("not within %v", countTimeout))
	defer cancel()
	if err := r.ready(ctx); err != nil {
		return err
	}
	if err := r.follower.Await(ctx, n*lineWords); err != nil {
		return fmt.Errorf("%w; the end of the worker's log:\n%s", err, r.worker.Tail(10))
	}
	topics, err := r.read(ctx, repartition, counts, changelog)
	if err != nil {
		return err
	}
	words := r.feed.wanted(n)
	if err := check.AsMultiset(repartition, topics[repartition], words); err != nil {
		return err
	}
	if err := check.InOrder(counts, topics[counts], check.RunningCounts(topics[repartition])); err != nil {
		return err
	}
	totals := check.Totals(words)
	logged, err := check.LastCounts(topics[changelog])
	if err != nil {
		return err
	}
	if err := check.Tables(changelog, logged, totals); err != nil {
		return err
	}
	state, err := r.state(ctx)
	if err != nil {
		return err
	}
	return check.Tables("the state", state, totals)
}

// read reads topics that nobody writes to any more. The last transaction may still be ending, so an open one is
// waited for.
func (r *run) read(ctx context.Context, names ...string) (map[string]check.Topic, error) {
	topics := map[string]check.Topic{}
	for _, name := range names {
		err := r.worker.Await(ctx, "end of the last transaction in "+name, func() (done bool, err error) {
			topics[name], err = check.Read(ctx, name, kgo.SeedBrokers(r.broker))
			return err == nil, err
		})
		if err != nil {
			return nil, err
		}
	}
	return topics, nil
}

// state asks the worker for what a query sees.
func (r *run) state(ctx context.Context) (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+string(r.rest)+"/dump", nil)
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
		return nil, fmt.Errorf("the worker's state: %s: %s", resp.Status, text)
	}
	state := map[string]uint64{}
	return state, json.NewDecoder(resp.Body).Decode(&state)
}
