package topology

import (
	"slices"
	"strings"
)

// mergeSources maps every source that reads the topics of an earlier one to that one: as in Kafka Streams, two streams
// over the same topics are one source node. They may decode it differently, so each keeps an entry of its own.
func (g *Graph) mergeSources() map[NodeID]NodeID {
	first := map[string]NodeID{}
	merged := map[NodeID]NodeID{}
	for _, n := range g.nodes {
		if n.Kind != Source {
			continue
		}
		key := sourceKey(n)
		if id, ok := first[key]; ok {
			merged[n.id] = id
		} else {
			first[key] = n.id
		}
	}
	return merged
}

// split returns the sub-topologies as lists of nodes in topological order. Their order is Kafka's: by the smallest name
// of a source node.
func (g *Graph) split(merged map[NodeID]NodeID) [][]*Node {
	sets := newUnionFind(len(g.nodes))
	users := map[string]NodeID{}
	for _, n := range g.nodes {
		for _, parent := range n.Parents {
			sets.union(n.id, parent)
		}
		if first, ok := merged[n.id]; ok {
			sets.union(n.id, first)
		}
		for _, store := range n.Stores {
			if other, ok := users[store]; ok {
				sets.union(n.id, other)
			}
			users[store] = n.id
		}
	}
	byRoot := map[NodeID][]*Node{}
	for _, n := range g.nodes {
		root := sets.find(n.id)
		byRoot[root] = append(byRoot[root], n)
	}
	parts := make([][]*Node, 0, len(byRoot))
	for _, nodes := range byRoot {
		parts = append(parts, nodes)
	}
	slices.SortFunc(parts, func(a, b []*Node) int {
		return strings.Compare(smallestSource(a, merged), smallestSource(b, merged))
	})
	return parts
}

func smallestSource(nodes []*Node, merged map[NodeID]NodeID) string {
	smallest := ""
	for _, n := range nodes {
		if _, dup := merged[n.id]; n.Kind == Source && !dup && (smallest == "" || n.Name < smallest) {
			smallest = n.Name
		}
	}
	return smallest
}

// copartitions returns the groups of sources that feed the same store, in full names. State is kept by key and a key must
// live in one partition, whichever of the sources it came from.
func (s *Subtopology) copartitions() [][]string {
	upstream := map[NodeID][]string{}
	feeding := map[string][]string{}
	for _, n := range s.nodes {
		var sources []string
		if n.Kind == Source {
			for _, topic := range n.Topics {
				sources = append(sources, s.full(n, topic))
			}
		}
		for _, parent := range n.Parents {
			sources = append(sources, upstream[parent]...)
		}
		upstream[n.id] = distinct(sources)
		for _, store := range n.Stores {
			feeding[store] = distinct(append(feeding[store], sources...))
		}
	}
	var groups [][]string
	for _, store := range s.Stores {
		if group := feeding[store.Name]; len(group) > 1 {
			groups = append(groups, group)
		}
	}
	return groups
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// unionFind is the textbook structure over node ids.
type unionFind []NodeID

func newUnionFind(n int) unionFind {
	u := make(unionFind, n)
	for i := range u {
		u[i] = NodeID(i)
	}
	return u
}

func (u unionFind) find(id NodeID) NodeID {
	for u[id] != id {
		u[id] = u[u[id]]
		id = u[id]
	}
	return id
}

func (u unionFind) union(a, b NodeID) { u[u.find(a)] = u.find(b) }
