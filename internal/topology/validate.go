package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxName is the longest name that Kafka allows for a topic and Kafka Streams for an operator.
const maxName = 249

// Suffixes of internal topics, as Kafka Streams writes them.
const (
	repartitionSuffix = "-repartition"
	changelogSuffix   = "-changelog"
)

// RepartitionTopic returns the name of a repartition topic without the application's prefix.
func RepartitionTopic(base string) string { return base + repartitionSuffix }

// CheckName reports whether a name may become (a part of) a topic name: what names the kind of thing for the error.
func CheckName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s is empty", what)
	case name == "." || name == "..":
		return fmt.Errorf("%s %q is not allowed", what, name)
	case len(name) > maxName:
		return fmt.Errorf("%s %.40q… has %d bytes, at most %d are allowed", what, name, len(name), maxName)
	}
	for _, c := range []byte(name) {
		if !legal(c) {
			return fmt.Errorf("%s %q: character %q is not allowed, use letters, digits, '.', '_' and '-'", what, name, c)
		}
	}
	return nil
}

func legal(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

func (g *Graph) validate(appID string) []error {
	var errs []error
	if err := CheckName("application id", appID); err != nil {
		errs = append(errs, err)
	}
	if !slices.ContainsFunc(g.nodes, func(n *Node) bool { return n.Kind == Source }) {
		errs = append(errs, errors.New("the topology reads no topic: begin with Builder.Stream or Builder.Table"))
	}
	errs = append(errs, g.validateNodes()...)
	errs = append(errs, g.validateStores(appID)...)
	return append(errs, g.validateTopics(appID)...)
}

func (g *Graph) validateNodes() []error {
	var errs []error
	seen := map[string]*Node{}
	for _, n := range g.nodes {
		if err := CheckName("operator name", n.Name); err != nil {
			errs = append(errs, n.failed(err))
		}
		if first, ok := seen[n.Name]; ok {
			errs = append(errs, n.failed(fmt.Errorf("the name %q is taken by %s at %s", n.Name, first.Operator, first.Call)))
			continue
		}
		seen[n.Name] = n
	}
	return errs
}

func (g *Graph) validateStores(appID string) []error {
	var errs []error
	seen := map[string]Store{}
	for _, s := range g.stores {
		failed := func(err error) { errs = append(errs, &BuildError{Call: s.Call, Operator: "store", Err: err}) }
		if err := CheckName("store name", s.Name); err != nil {
			failed(err)
			continue
		}
		if err := s.Validate(); err != nil {
			failed(err)
		}
		if err := CheckName("changelog topic", appID+"-"+s.Name+changelogSuffix); s.Logged && err != nil {
			failed(err)
		}
		if first, ok := seen[s.Name]; ok {
			failed(fmt.Errorf("the store name %q is taken at %s", s.Name, first.Call))
		}
		seen[s.Name] = s
	}
	return errs
}

// validateTopics checks topic names, and that two sources read either the same topics or none in common: a topic is
// read once, by one sub-topology.
func (g *Graph) validateTopics(appID string) []error {
	var errs []error
	readers := map[string]*Node{}
	for _, n := range g.nodes {
		for _, topic := range n.Topics {
			full := topic
			if n.Internal {
				full = appID + "-" + topic
			}
			if err := CheckName("topic name", full); err != nil {
				errs = append(errs, n.failed(err))
			}
		}
		if n.Kind != Source {
			continue
		}
		if err := checkOverlap(n, readers); err != nil {
			errs = append(errs, n.failed(err))
		}
	}
	return errs
}

func checkOverlap(n *Node, readers map[string]*Node) error {
	if len(n.Topics) == 0 {
		return errors.New("no topic given")
	}
	for _, topic := range n.Topics {
		first, ok := readers[topic]
		switch {
		case !ok:
			readers[topic] = n
		case first.Internal != n.Internal:
			return fmt.Errorf("topic %q has the name of the repartition topic of %s at %s: choose another name for that operator",
				topic, first.Operator, first.Call)
		case n.Internal:
			return fmt.Errorf("the repartition topic %q belongs to %s at %s: choose another name", topic, first.Operator, first.Call)
		case sourceKey(first) != sourceKey(n):
			return fmt.Errorf("topic %q is also read at %s together with other topics: sources must read the same set of topics or none in common",
				topic, first.Call)
		}
	}
	return nil
}

// sourceKey identifies a set of topics.
func sourceKey(n *Node) string {
	return strings.Join(slices.Sorted(slices.Values(n.Topics)), ",")
}

func (n *Node) failed(err error) error {
	return &BuildError{Call: n.Call, Operator: n.Operator, Err: err}
}
