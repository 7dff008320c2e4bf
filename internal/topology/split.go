package topology

import "slices"

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

// split returns the sub-topologies as lists of nodes in topological order. Their order is Kafka's: by the first node that
// was declared.
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
	index := map[NodeID]int{}
	var parts [][]*Node
	for _, n := range g.nodes {
		root := sets.find(n.id)
		i, ok := index[root]
		if !ok {
			i = len(parts)
			index[root] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], n)
	}
	return parts
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
