package topology

import (
	"errors"
	"fmt"

	"github.com/millrace-io/millrace/statestore"
)

// NodeID is the index of a node in its graph; parents have smaller ids than their children.
type NodeID int32

// Kind is what a node does with topics.
type Kind uint8

const (
	// Processor reads and writes no topic.
	Processor Kind = iota
	// Source reads topics.
	Source
	// SinkKind writes a topic.
	SinkKind
)

// BuildFunc makes the node for one task. in holds the outlets of the parents in their order.
type BuildFunc func(rt Runtime, in []any) (Built, error)

// Built is a node of one task.
type Built struct {
	// Outlet is what children attach themselves to; the DSL knows its type.
	Outlet any
	// Entry is set by sources only.
	Entry Entry
}

// Node is one operator. The DSL fills everything but the id.
type Node struct {
	Kind Kind
	// Name is unique in the topology.
	Name string
	// Call is the place in the user's program, "main.go:31", for errors.
	Call string
	// Operator is the method that the user called, for errors.
	Operator string
	Parents  []NodeID
	// Stores are the names of the stores it uses. A node with a store keeps state by key, so all sources that reach
	// it must have the same number of partitions.
	Stores []string
	// Topics are what a source reads, or the one topic that a sink writes.
	Topics []string
	// Internal says that Topics names a repartition topic, without the application's prefix.
	Internal bool
	// Partitions is the explicit partition count of a repartition topic, on its sink, or 0.
	Partitions int32
	Build      BuildFunc

	id NodeID
}

// Store is a declared state store.
type Store struct {
	statestore.Spec
	Call string
}

// Graph collects what the DSL declares. It belongs to one goroutine. Errors are kept and reported together by Build.
type Graph struct {
	nodes   []*Node
	stores  []Store
	counter int
	errs    []error
}

// NewName returns Kafka Streams' generated name: the prefix and the next value of the counter that operators and
// stores share.
func (g *Graph) NewName(prefix string) string {
	name := fmt.Sprintf("%s%010d", prefix, g.counter)
	g.counter++
	return name
}

// Add appends a node and returns its id.
func (g *Graph) Add(n Node) NodeID {
	n.id = NodeID(len(g.nodes))
	g.nodes = append(g.nodes, &n)
	return n.id
}

// AddStore declares a store.
func (g *Graph) AddStore(s Store) { g.stores = append(g.stores, s) }

// Fail keeps an error with the place of the user's call.
func (g *Graph) Fail(call, operator string, err error) {
	g.errs = append(g.errs, &BuildError{Call: call, Operator: operator, Err: err})
}

// BuildError is one mistake in a topology. [Graph.Build] joins all of them.
type BuildError struct {
	// Call is the line of the user's program, such as "main.go:31".
	Call string
	// Operator is the method that was called there.
	Operator string
	Err      error
}

// Error returns "main.go:31: GroupBy: …".
func (e *BuildError) Error() string { return e.Call + ": " + e.Operator + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *BuildError) Unwrap() error { return e.Err }

// Build validates the graph and plans it for the application. The error joins all mistakes.
func (g *Graph) Build(appID string) (*Plan, error) {
	errs := append(append([]error(nil), g.errs...), g.validate(appID)...)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return g.plan(appID), nil
}
