package topology

import "fmt"

// Input is one source topic of a task and the entries of the source nodes that read it, in the order of declaration.
type Input struct {
	Topic   string
	Entries []Entry
}

// Instantiate builds the operators for one task. The inputs are in the order of Sources.
func (s *Subtopology) Instantiate(rt Runtime) ([]Input, error) {
	inputs := make([]Input, len(s.Sources))
	index := make(map[string]int, len(s.Sources))
	for i, source := range s.Sources {
		inputs[i].Topic = source.Topic
		index[source.Topic] = i
	}
	outlets := map[NodeID]any{}
	for _, n := range s.nodes {
		in := make([]any, len(n.Parents))
		for i, parent := range n.Parents {
			in[i] = outlets[parent]
		}
		built, err := n.Build(rt, in)
		if err != nil {
			return nil, fmt.Errorf("build operator %s (%s at %s): %w", n.Name, n.Operator, n.Call, err)
		}
		outlets[n.id] = built.Outlet
		if n.Kind != Source {
			continue
		}
		for _, topic := range n.Topics {
			input := &inputs[index[s.full(n, topic)]]
			input.Entries = append(input.Entries, built.Entry)
		}
	}
	return inputs, nil
}
