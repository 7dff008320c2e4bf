package streams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/membership/assign"
	"github.com/millrace-io/millrace/metadata"
	"github.com/millrace-io/millrace/thread"
)

// checkTopics creates the internal topics, checks the others, and lays the tasks out.
func (p *process) checkTopics(ctx context.Context) error {
	adm := kadm.NewClient(p.admin)
	counts, err := metadata.CheckSources(ctx, adm, p.app.plan.SourceTopics())
	if err != nil {
		return topicFailure(fmt.Errorf("topics that the topology reads: %w", err))
	}
	if _, err := metadata.CheckSources(ctx, adm, p.app.plan.SinkTopics()); err != nil {
		return topicFailure(fmt.Errorf("topics that the topology writes: %w", err))
	}
	if err := p.layOut(ctx, adm, counts); err != nil {
		return err
	}
	return nil
}

// layOut makes the layout for the given partition counts of the source topics.
func (p *process) layOut(ctx context.Context, adm *kadm.Client, counts map[string]int32) *Error {
	layout, err := p.app.plan.Resolve(func(topic string) (int32, bool) {
		n, ok := counts[topic]
		return n, ok
	})
	if err != nil {
		return failure(KindTopic, err)
	}
	if err := metadata.EnsureTopics(ctx, adm, layout.InternalTopics(), p.app.cfg.ReplicationFactor); err != nil {
		return topicFailure(err)
	}
	next := &thread.Layout{Layout: layout, Assignable: p.assignable(layout), Began: counts}
	if before := p.layout.Load(); before != nil {
		next.Began = before.Began
	}
	p.layout.Store(next)
	return nil
}

// topicFailure adds the topic to the error if it is about one.
func topicFailure(err error) *Error {
	e := failure(KindBroker, err)
	if te, ok := errors.AsType[*metadata.TopicError](err); ok {
		e.Kind, e.Topic = KindTopic, te.Topic
	}
	return e
}

// assignable lists the application's tasks for the group's leader.
func (p *process) assignable(layout *topology.Layout) []assign.Task {
	var tasks []assign.Task
	for _, id := range layout.Tasks() {
		t := assign.Task{ID: id}
		for _, s := range layout.Sources(id) {
			t.Sources = append(t.Sources, assign.TopicPartition{Topic: s.Topic, Partition: id.Partition})
		}
		if sub, ok := p.app.plan.Sub(id.Subtopology); ok {
			for _, s := range sub.Stores {
				t.Stateful = t.Stateful || s.Logged
			}
		}
		tasks = append(tasks, t)
	}
	return tasks
}

// lookTimeout bounds the requests of one look at the topics.
const lookTimeout = 30 * time.Second

// watchTopics looks at the source topics from time to time until ctx ends. Growth that the application cannot follow ends it.
func (p *process) watchTopics(ctx context.Context) {
	tick := time.NewTicker(p.app.cfg.MetadataMaxAge)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := p.lookAtTopics(ctx); err != nil && ctx.Err() == nil {
			if err.Kind == KindTopic {
				p.broken <- err
				return
			}
			p.app.cfg.Logger.Warn("the source topics cannot be looked at, trying again", "app", p.app.cfg.AppID, "in", p.app.cfg.MetadataMaxAge, "err", err)
		}
	}
}

// lookAtTopics makes a new layout if source topics have grown, and tells the threads. Where a topic's records are hashed to
// state, or to a repartition topic, growth would part keys from their state: that is an error of [KindTopic], and the
// application must not go on as if nothing had happened. A topic that is not there, or has shrunk, is left to the fetching
// threads: it may have been deleted to be made again.
func (p *process) lookAtTopics(ctx context.Context) *Error {
	p.looking.Lock()
	defer p.looking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	adm := kadm.NewClient(p.admin)
	counts, err := metadata.CheckSources(ctx, adm, p.app.plan.SourceTopics())
	if err != nil {
		return failure(KindBroker, err)
	}
	before := p.layout.Load()
	grown := map[string]string{}
	for topic, n := range counts {
		if was := before.Count(topic); n > was {
			grown[topic] = fmt.Sprintf("%s from %d to %d partitions", topic, was, n)
		} else {
			counts[topic] = was
		}
	}
	if len(grown) == 0 {
		return nil
	}
	growth := strings.Join(slices.Sorted(maps.Values(grown)), ", ")
	if err := p.layOut(ctx, adm, counts); err != nil {
		if err.Kind == KindTopic {
			err.Err = fmt.Errorf("source topics have grown (%s), and keys would part from their state: the application's internal topics "+
				"have the former size. Process the input anew under another AppID, or make the source topics anew with the former size: %w", growth, err.Err)
		}
		return err
	}
	p.app.cfg.Logger.Info("source topics have grown", "app", p.app.cfg.AppID, "grown", growth)
	for _, t := range p.threads() {
		t.LayoutChanged()
	}
	return nil
}

// refresh is lookAtTopics for a thread that was assigned a task which it does not know.
func (p *process) refresh(ctx context.Context) error {
	if err := p.lookAtTopics(ctx); err != nil {
		return err
	}
	return nil
}
