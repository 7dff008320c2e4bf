package topology

import (
	"fmt"
	"slices"
	"strings"
)

// Describe returns the topology in the text format of Kafka's TopologyDescription.
func (p *Plan) Describe() string {
	var b strings.Builder
	b.WriteString("Topologies:\n ")
	for i := range p.Subtopologies {
		fmt.Fprintf(&b, "  Sub-topology: %d\n", i)
		p.Subtopologies[i].describe(&b)
		b.WriteByte('\n')
	}
	return b.String()
}

// described is a node with its neighbours, sources over the same topics merged.
type described struct {
	*Node
	before, after nodeSet
	size          int // nodes on all paths down from here, itself included
}

func (s *Subtopology) describe(b *strings.Builder) {
	nodes := s.link()
	slices.SortFunc(nodes, compareNodes)
	for _, n := range nodes {
		switch n.Kind {
		case Source:
			fmt.Fprintf(b, "    Source: %s (topics: [%s])\n", n.Name, strings.Join(n.Topics, ", "))
		case SinkKind:
			fmt.Fprintf(b, "    Sink: %s (topic: %s)\n", n.Name, n.Topics[0])
		default:
			fmt.Fprintf(b, "    Processor: %s (stores: [%s])\n", n.Name, strings.Join(slices.Sorted(slices.Values(n.Stores)), ", "))
		}
		if n.Kind != SinkKind {
			fmt.Fprintf(b, "      --> %s\n", names(n.after.all()))
		}
		if n.Kind != Source {
			fmt.Fprintf(b, "      <-- %s\n", names(n.before.all()))
		}
	}
}

// link connects the nodes in the order in which Kafka does it.
func (s *Subtopology) link() []*described {
	byID := map[NodeID]*described{}
	var nodes []*described
	for _, n := range s.nodes {
		if first, ok := s.merged[n.id]; ok {
			byID[n.id] = byID[first]
			continue
		}
		byID[n.id] = &described{Node: n, size: 1}
		nodes = append(nodes, byID[n.id])
	}
	for _, d := range hashOrder(nodes) {
		for _, parent := range d.Parents {
			before := byID[parent]
			d.before.add(before)
			before.after.add(d)
			before.grow(d.size)
		}
	}
	return nodes
}

// grow adds a sub-tree's size to a node and to all above it that are linked already.
func (d *described) grow(size int) {
	d.size += size
	for _, before := range d.before.all() {
		before.grow(size)
	}
}

func names(nodes []*described) string {
	if len(nodes) == 0 {
		return "none"
	}
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = n.Name
	}
	return strings.Join(all, ", ")
}
