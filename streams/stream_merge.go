package streams

import "github.com/millrace-io/millrace/internal/topology"

// Merge interleaves two streams in the order in which their records are processed. Serdes are those of the receiver,
// the other's where it has none.
func (s Stream[K, V]) Merge(other Stream[K, V], opts ...Option) Stream[K, V] {
	n := s.b.node("Merge", operatorOpts(opts).name, "KSTREAM-MERGE-")
	if other.b != s.b {
		s.b.fail("Merge", "the other stream belongs to another Builder")
		return s
	}
	n.Parents = []topology.NodeID{s.node, other.node}
	n.Build = func(_ topology.Runtime, in []any) (topology.Built, error) {
		out := new(outlet[K, V])
		for _, parent := range in {
			p := parent.(*outlet[K, V])
			p.children = append(p.children, mergeNode[K, V]{out})
		}
		return topology.Built{Outlet: out}, nil
	}
	merged := s.same(s.b.graph.Add(n))
	if merged.key == nil {
		merged.key = other.key
	}
	if merged.value == nil {
		merged.value = other.value
	}
	merged.rekeyed = s.rekeyed || other.rekeyed
	return merged
}

type mergeNode[K, V any] struct{ out *outlet[K, V] }

func (n mergeNode[K, V]) receive(r record[K, V]) error { return n.out.forward(r) }
