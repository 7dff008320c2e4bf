package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-io/millrace/internal/taskid"
)

// Partitions tells how many partitions a source topic has; ok is false when it does not exist.
type Partitions func(topic string) (count int32, ok bool)

// MissingTopicsError says that source topics do not exist.
type MissingTopicsError struct{ Topics []string }

// Error names the topics and what to do.
func (e *MissingTopicsError) Error() string {
	return fmt.Sprintf("source topics do not exist: %s; create them before the application starts", strings.Join(e.Topics, ", "))
}

// CopartitionError says that sources which feed the same state differ in their number of partitions.
type CopartitionError struct {
	Subtopology string
	Topics      []string // sorted
	Counts      []int32  // by topic
}

// Error names topics and counts and what to do.
func (e *CopartitionError) Error() string {
	parts := make([]string, len(e.Topics))
	for i, topic := range e.Topics {
		parts[i] = fmt.Sprintf("%s has %d", topic, e.Counts[i])
	}
	return fmt.Sprintf("sub-topology %s: topics that feed the same state must have equal partition counts: %s; "+
		"repartition one side (Stream.Repartition) or recreate a topic", e.Subtopology, strings.Join(parts, ", "))
}

// Layout is a plan with all partition counts known.
type Layout struct {
	plan   *Plan
	counts map[string]int32 // all source topics, internal ones included
}

// Resolve works out the partition counts of the internal topics.
func (p *Plan) Resolve(partitions Partitions) (*Layout, error) {
	l := &Layout{plan: p, counts: map[string]int32{}}
	var missing []string
	for _, topic := range p.SourceTopics() {
		count, ok := partitions(topic)
		if !ok || count < 1 {
			missing = append(missing, topic)
			continue
		}
		l.counts[topic] = count
	}
	if len(missing) > 0 {
		return nil, &MissingTopicsError{Topics: missing}
	}
	external := len(l.counts)
	// A coerced count can change the counts of repartition topics further down, so sizing starts again with it. Each
	// round fixes at least one more topic; the sum of all topics bounds the rounds.
	fixed := p.explicit()
	for range external + len(p.repartitions()) + 1 {
		if err := l.size(fixed); err != nil {
			return nil, err
		}
		changed, err := l.coerce(fixed)
		if err != nil || !changed {
			return l, err
		}
	}
	return nil, errors.New("partition counts of repartition topics do not settle: give Repartition an explicit count")
}

// Count returns the partition count of a source topic, internal ones included.
func (l *Layout) Count(topic string) int32 { return l.counts[topic] }

// Tasks returns all tasks of the application, ordered by sub-topology and partition.
func (l *Layout) Tasks() []taskid.ID {
	var ids []taskid.ID
	for i := range l.plan.Subtopologies {
		sub := &l.plan.Subtopologies[i]
		for partition := range l.tasks(sub) {
			ids = append(ids, taskid.ID{Subtopology: sub.ID, Partition: partition})
		}
	}
	return ids
}

// Sources returns the topics of which the task reads its partition: a topic with fewer partitions than another has none
// for the highest tasks.
func (l *Layout) Sources(id taskid.ID) []SourceTopic {
	sub, ok := l.plan.Sub(id.Subtopology)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(sub.Sources), func(s SourceTopic) bool { return l.counts[s.Topic] <= id.Partition })
}

// tasks is the number of tasks of a sub-topology: the greatest partition count of its sources.
func (l *Layout) tasks(sub *Subtopology) int32 {
	var most int32
	for _, s := range sub.Sources {
		most = max(most, l.counts[s.Topic])
	}
	return most
}

// Tasks resolves the layout and returns its tasks.
func (p *Plan) Tasks(partitions func(topic string) (int32, bool)) ([]taskid.ID, error) {
	l, err := p.Resolve(partitions)
	if err != nil {
		return nil, err
	}
	return l.Tasks(), nil
}

// repartitions returns the repartition topics in full names.
func (p *Plan) repartitions() []string {
	var topics []string
	for _, sub := range p.Subtopologies {
		for _, s := range sub.Sources {
			if s.Internal {
				topics = append(topics, s.Topic)
			}
		}
	}
	return topics
}

// explicit returns the counts that the user asked for.
func (p *Plan) explicit() map[string]int32 {
	counts := map[string]int32{}
	for i := range p.Subtopologies {
		sub := &p.Subtopologies[i]
		for _, n := range sub.nodes {
			if n.Kind == SinkKind && n.Internal && n.Partitions > 0 {
				counts[sub.full(n, n.Topics[0])] = n.Partitions
			}
		}
	}
	return counts
}

// size gives every repartition topic its fixed count, or the greatest count among the sources of the sub-topologies
// that write it. Those may be repartition topics themselves, even the same one, so the counts grow from zero until they
// are stable.
func (l *Layout) size(fixed map[string]int32) error {
	topics := l.plan.repartitions()
	for _, topic := range topics {
		l.counts[topic] = fixed[topic]
	}
	for grown := true; grown; {
		grown = false
		for _, topic := range topics {
			if _, ok := fixed[topic]; ok {
				continue
			}
			if count := l.writers(topic); count > l.counts[topic] {
				l.counts[topic] = count
				grown = true
			}
		}
	}
	for _, topic := range topics {
		if l.counts[topic] == 0 {
			return fmt.Errorf("repartition topic %s gets records from other repartition topics only, in a circle: give one of them an explicit count", topic)
		}
	}
	return nil
}

// writers is the greatest number of tasks of the sub-topologies that write the topic, as far as it is known.
func (l *Layout) writers(topic string) (count int32) {
	for i := range l.plan.Subtopologies {
		sub := &l.plan.Subtopologies[i]
		if slices.Contains(sub.Sinks, topic) {
			count = max(count, l.tasks(sub))
		}
	}
	return count
}

// coerce makes the groups that feed the same state equal. External topics and explicit counts are given and must
// agree; the others follow them, or the greatest among themselves.
func (l *Layout) coerce(fixed map[string]int32) (changed bool, err error) {
	internal := map[string]bool{}
	for _, topic := range l.plan.repartitions() {
		internal[topic] = true
	}
	for i := range l.plan.Subtopologies {
		sub := &l.plan.Subtopologies[i]
		for _, group := range sub.groups {
			want := l.wanted(group, internal, fixed)
			for _, topic := range group {
				if l.counts[topic] == want {
					continue
				}
				if _, given := fixed[topic]; given || !internal[topic] {
					return false, l.mismatch(sub, group)
				}
				fixed[topic] = want
				changed = true
			}
		}
	}
	return changed, nil
}

// wanted is the count of the first given topic, or the greatest when none is given.
func (l *Layout) wanted(group []string, internal map[string]bool, fixed map[string]int32) int32 {
	var most int32
	for _, topic := range group {
		if _, given := fixed[topic]; given || !internal[topic] {
			return l.counts[topic]
		}
		most = max(most, l.counts[topic])
	}
	return most
}

func (l *Layout) mismatch(sub *Subtopology, group []string) error {
	e := &CopartitionError{Subtopology: sub.ID, Topics: group}
	for _, topic := range group {
		e.Counts = append(e.Counts, l.counts[topic])
	}
	return e
}
