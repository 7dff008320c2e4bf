package topology

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/millrace-io/millrace/statestore"
)

// Plan is a validated topology of one application. It is immutable and safe for concurrent use.
type Plan struct {
	AppID string
	// Subtopologies are in the order of Kafka's ordinals.
	Subtopologies []Subtopology
	// Hash is equal for equal topologies in every process, and differs when operators, topics or stores differ.
	Hash uint64
}

// Subtopology is a connected part of the topology. Its tasks, one a partition, share nothing with other tasks.
type Subtopology struct {
	// ID is the stable name.
	ID string
	// Sources are what a task reads; Sinks are the topics that it writes, full names without duplicates.
	Sources []SourceTopic
	Sinks   []string
	// Stores are sorted by name.
	Stores []StoreSpec

	appID  string
	nodes  []*Node // topological order
	merged map[NodeID]NodeID
	groups [][]string // sources that must have equal partition counts, full names
}

// SourceTopic is a topic by its full name. Internal ones are repartition topics.
type SourceTopic struct {
	Topic    string
	Internal bool
}

// StoreSpec is a store and the full name of its changelog topic, which is empty for a store without one.
type StoreSpec struct {
	statestore.Spec
	Changelog string
}

// Sub returns the sub-topology with the given id.
func (p *Plan) Sub(id string) (*Subtopology, bool) {
	for i := range p.Subtopologies {
		if p.Subtopologies[i].ID == id {
			return &p.Subtopologies[i], true
		}
	}
	return nil, false
}

// SourceTopics returns the topics that must exist before the application starts, sorted.
func (p *Plan) SourceTopics() []string {
	topics := map[string]bool{}
	for _, sub := range p.Subtopologies {
		for _, s := range sub.Sources {
			if !s.Internal {
				topics[s.Topic] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(topics))
}

// SinkTopics returns the topics that are not internal and are written, sorted.
func (p *Plan) SinkTopics() []string {
	topics := map[string]bool{}
	for _, sub := range p.Subtopologies {
		for _, n := range sub.nodes {
			if n.Kind == SinkKind && !n.Internal {
				topics[n.Topics[0]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(topics))
}

func (g *Graph) plan(appID string) *Plan {
	p := &Plan{AppID: appID}
	merged := g.mergeSources()
	for _, nodes := range g.split(merged) {
		p.Subtopologies = append(p.Subtopologies, g.subtopology(appID, nodes, merged))
	}
	p.Hash = p.hash()
	return p
}

func (g *Graph) subtopology(appID string, nodes []*Node, merged map[NodeID]NodeID) Subtopology {
	sub := Subtopology{appID: appID, nodes: nodes, merged: merged}
	stores := map[string]bool{}
	var short []string
	for _, n := range nodes {
		for _, store := range n.Stores {
			stores[store] = true
		}
		if _, dup := merged[n.id]; dup {
			continue
		}
		switch n.Kind {
		case Source:
			for _, topic := range n.Topics {
				sub.Sources = append(sub.Sources, SourceTopic{Topic: sub.full(n, topic), Internal: n.Internal})
			}
			short = append(short, n.Topics...)
		case SinkKind:
			if topic := sub.full(n, n.Topics[0]); !slices.Contains(sub.Sinks, topic) {
				sub.Sinks = append(sub.Sinks, topic)
			}
		}
	}
	sub.ID = slices.Min(short)
	sub.Stores = g.storeSpecs(appID, stores)
	sub.groups = sub.copartitions()
	return sub
}

func (g *Graph) storeSpecs(appID string, used map[string]bool) []StoreSpec {
	var specs []StoreSpec
	for _, s := range g.stores {
		if !used[s.Name] {
			continue
		}
		spec := StoreSpec{Spec: s.Spec}
		if s.Logged {
			spec.Changelog = appID + "-" + s.Name + changelogSuffix
		}
		specs = append(specs, spec)
	}
	slices.SortFunc(specs, func(a, b StoreSpec) int { return strings.Compare(a.Name, b.Name) })
	return specs
}

// full returns the topic's name in Kafka.
func (s *Subtopology) full(n *Node, topic string) string {
	if n.Internal {
		return s.appID + "-" + topic
	}
	return topic
}

// SinkIndex returns the index in Sinks of a topic that a sink node names.
func (s *Subtopology) SinkIndex(topic string, internal bool) (int, bool) {
	i := slices.Index(s.Sinks, s.full(&Node{Internal: internal}, topic))
	return i, i >= 0
}

// NodeName returns the name of an operator, for errors.
func (s *Subtopology) NodeName(id NodeID) string {
	for _, n := range s.nodes {
		if n.id == id {
			return n.Name
		}
	}
	return fmt.Sprintf("node %d", id)
}

// hash covers what makes two topologies behave differently towards brokers and stores: the text of Describe, the stable
// names, the stores and the partition counts that were asked for.
func (p *Plan) hash() uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\n%s", p.AppID, p.Describe())
	for _, sub := range p.Subtopologies {
		fmt.Fprintf(h, "%s %v %v %v\n", sub.ID, sub.Sources, sub.Sinks, sub.Stores)
		for _, n := range sub.nodes {
			if n.Partitions > 0 {
				fmt.Fprintf(h, "%v=%d\n", n.Topics, n.Partitions)
			}
		}
	}
	return h.Sum64()
}
