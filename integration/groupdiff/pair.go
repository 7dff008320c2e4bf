package groupdiff

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	topicName   = "groupdiff"
	absentTopic = "groupdiff-absent"

	// patience bounds the wait for an answer that the other side has given already, or that must come. It is longer than
	// a busy machine lets a broker stand still, and only differences take it.
	patience = 20 * time.Second
)

// A pair is both sides of one sequence: the same group on each.
type pair struct {
	group  string
	settle time.Duration // after each request, before anything else is asked
	waits  time.Duration // for an answer that must come
	sides  [2]*side      // Kafka, ours
	names  [2]*names
	parts  [2]int32 // partitions of the offsets topic
	sent   []request
	seen   map[int]bool // requests that are answered on both sides
	leader string       // of the generation that both told last, renamed
	orders int          // different lists of protocols that were offered
	lists  map[string]bool
	inTxn  bool
	trace  []string
}

// outcome is how a sequence ended.
type outcome struct {
	steps   int
	known   string // the explained difference that ended it, or ""
	unknown string // the difference, or ""
	trace   []string
}

// play sends a sequence until its end or the first difference.
func (p *pair) play(ctx context.Context, next func(*pair) (request, bool)) (outcome, error) {
	defer p.sides[0].close()
	defer p.sides[1].close()
	var o outcome
	for {
		r, ok := next(p)
		if !ok {
			o.trace = p.trace
			return o, nil
		}
		difference, err := p.step(ctx, r)
		if err != nil {
			return o, fmt.Errorf("%w\n%s", err, strings.Join(p.trace, "\n"))
		}
		o.steps++
		if difference != nil {
			o.trace = p.trace
			if o.known = p.explain(difference[0], difference[1]); o.known == "" {
				o.unknown = fmt.Sprintf("kafka: %s\nours:  %s", difference[0], difference[1])
			}
			return o, nil
		}
	}
}

// step sends one request to both sides and compares what it brought about. The result is nil, or the answers that differ.
func (p *pair) step(ctx context.Context, r request) ([]string, error) {
	number := len(p.sent)
	p.sent = append(p.sent, r)
	p.trace = append(p.trace, fmt.Sprintf("%d %s", number, r))
	if r.kind == "join" {
		if offers := strings.Join(r.offers, ","); !p.lists[offers] {
			p.lists[offers] = true
			p.orders++
		}
	}
	if r.kind == "end-txn" {
		return nil, p.endTxn(ctx, r.commit)
	}
	if r.kind == "txn-commit" {
		if err := p.beginTxn(ctx, r); err != nil {
			return nil, err
		}
	}
	for s, side := range p.sides {
		if err := side.send(number, r.client, r.build(p.group, p.names[s])); err != nil {
			return nil, err
		}
	}
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	return p.compare(ctx)
}

// wait returns when both sides have dealt with the request just sent. That cannot be seen of one that is parked, so this
// relies on order: a broker reads connections as they become ready, and only a thread that is held up longer than the
// barrier takes lets a later request overtake. settle makes that longer.
func (p *pair) wait(ctx context.Context) error {
	select {
	case <-time.After(p.settle):
	case <-ctx.Done():
		return ctx.Err()
	}
	for range 2 { // the answers travel on other connections than the barrier's
		if err := p.barrier(ctx); err != nil {
			return err
		}
	}
	return nil
}

// compare looks at every request that was not answered on both sides before.
func (p *pair) compare(ctx context.Context) ([]string, error) {
	open := make(map[int][2]kmsg.Response)
	for number, r := range p.sent {
		if p.seen[number] || r.kind == "end-txn" {
			continue
		}
		answers, err := p.answers(ctx, number)
		if err != nil {
			return nil, err
		}
		open[number] = answers
		p.names[0].meet(answers[0])
		p.names[1].meet(answers[1])
	}
	var difference []string
	for _, number := range slices.Sorted(maps.Keys(open)) {
		answers := open[number]
		kafka, ours := p.names[0].render(answers[0], p.group), p.names[1].render(answers[1], p.group)
		switch {
		case kafka != ours:
			p.trace = append(p.trace, fmt.Sprintf("    ! %d kafka: %s", number, kafka), fmt.Sprintf("    ! %d ours:  %s", number, ours))
			if difference == nil {
				difference = []string{kafka, ours}
			}
		case answers[0] == nil:
			continue
		default:
			p.trace = append(p.trace, fmt.Sprintf("    %d: %s", number, kafka))
			p.agree(p.sent[number], answers)
		}
		p.seen[number] = true
	}
	return difference, nil
}

// agree takes from equal answers what clients learn.
func (p *pair) agree(r request, answers [2]kmsg.Response) {
	for s, resp := range answers {
		p.names[s].learn(r.client, resp)
	}
	if join, ok := answers[0].(*kmsg.JoinGroupResponse); ok && join.ErrorCode == 0 {
		p.leader = p.names[0].rename(join.LeaderID)
	}
}

// answers returns both answers to a request, or none if it is parked. If one side has answered, or the request is of a kind
// that is never parked, it waits for what is missing: a commit may still be on its way to the log when the barrier is through.
func (p *pair) answers(ctx context.Context, number int) (answers [2]kmsg.Response, err error) {
	deadline := time.NewTimer(p.waits)
	defer deadline.Stop()
	for {
		var next [2]<-chan struct{}
		for s, side := range p.sides {
			var failed error
			answers[s], next[s], failed = side.answered(number)
			err = errors.Join(err, failed)
		}
		answered := answers[0] != nil && answers[1] != nil
		parked := answers[0] == nil && answers[1] == nil && p.sent[number].parks()
		if err != nil || answered || parked {
			return answers, err
		}
		select {
		case <-next[0]:
		case <-next[1]:
		case <-deadline.C:
			return answers, nil
		case <-ctx.Done():
			return answers, ctx.Err()
		}
	}
}

// barrier returns when both sides have done what they were asked for before.
func (p *pair) barrier(ctx context.Context) error {
	for s, side := range p.sides {
		heartbeat := kmsg.NewPtrHeartbeatRequest()
		heartbeat.Version, heartbeat.Group, heartbeat.MemberID = 4, p.group, "barrier"
		if _, err := side.call(ctx, heartbeat); err != nil {
			return err
		}
		commit := request{kind: "commit", version: 9, simple: true, topic: topicName}.build(p.neighbour(p.parts[s]), p.names[s])
		if _, err := side.call(ctx, commit); err != nil {
			return err
		}
	}
	return nil
}

// neighbour names a group in the same partition of the offsets topic.
func (p *pair) neighbour(partitions int32) string {
	want := coordinator.PartitionFor(p.group, partitions)
	for i := 0; ; i++ {
		if name := fmt.Sprintf("groupdiff-neighbour-%d", i); coordinator.PartitionFor(name, partitions) == want {
			return name
		}
	}
}
