package streams

import (
	"github.com/millrace-io/millrace/internal/topology"
)

// site is what every operator knows of its surroundings.
type site struct {
	rt     topology.Runtime
	cursor *topology.Cursor
	id     topology.NodeID
	name   string
}

// enter notes that user code of this operator runs now, so that a panic is attributed to it.
func (s *site) enter() { s.cursor.Node = s.id }

// failed reports an error of user code; a nil result means that the record is skipped here.
func (s *site) failed(err error) error { return s.rt.Fail(topology.FailProcess, s.name, err) }

// drop counts the record and leaves it out.
func (s *site) drop(reason topology.DropReason) error {
	s.rt.Drop(reason)
	return nil
}

// attach adds an operator with one parent to the graph. make is called once for each task with the outlet that the
// operator forwards to. This is the place where typed and erased world meet: an outlet of another type is a bug here.
func attach[K, V, J, W any](b *Builder, parent topology.NodeID, n topology.Node, make func(site, *outlet[J, W]) (receiver[K, V], error)) topology.NodeID {
	id := new(topology.NodeID)
	n.Parents = []topology.NodeID{parent}
	n.Build = func(rt topology.Runtime, in []any) (topology.Built, error) {
		out := new(outlet[J, W])
		r, err := make(site{rt: rt, cursor: rt.Cursor(), id: *id, name: n.Name}, out)
		if err != nil {
			return topology.Built{}, err
		}
		parent := in[0].(*outlet[K, V])
		parent.children = append(parent.children, r)
		return topology.Built{Outlet: out}, nil
	}
	*id = b.graph.Add(n)
	return *id
}
