package topology

import (
	"cmp"
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
	before, after []*described
	size          int // nodes on all paths down from here, itself included
}

func (s *Subtopology) describe(b *strings.Builder) {
	nodes := s.link()
	order(nodes)
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
			fmt.Fprintf(b, "      --> %s\n", names(n.after))
		}
		if n.Kind != Source {
			fmt.Fprintf(b, "      <-- %s\n", names(n.before))
		}
	}
}

// link connects the nodes. Going backward through the topological order, sizes are complete when they are needed.
func (s *Subtopology) link() []*described {
	byID := map[NodeID]*described{}
	var nodes []*described
	for _, n := range s.nodes {
		if first, ok := s.merged[n.id]; ok {
			byID[n.id] = byID[first]
			continue
		}
		d := &described{Node: n, size: 1}
		byID[n.id] = d
		nodes = append(nodes, d)
		for _, parent := range n.Parents {
			before := byID[parent]
			d.before = append(d.before, before)
			before.after = append(before.after, d)
		}
	}
	for _, d := range slices.Backward(nodes) {
		for _, child := range d.after {
			d.size += child.size
		}
	}
	return nodes
}

// order sorts as Kafka does: the biggest sub-tree first, then by name.
func order(nodes []*described) {
	slices.SortFunc(nodes, func(a, b *described) int {
		return cmp.Or(cmp.Compare(b.size, a.size), strings.Compare(a.Name, b.Name))
	})
}

func names(nodes []*described) string {
	if len(nodes) == 0 {
		return "none"
	}
	order(nodes)
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = n.Name
	}
	return strings.Join(all, ", ")
}
