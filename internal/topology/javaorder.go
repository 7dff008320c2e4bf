package topology

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf16"
)

// Kafka's text of a topology lists neighbours in the order of a java.util.TreeSet that was filled while the sizes which it
// compares still changed, in the order of a java.util.HashMap. Tools and tests compare that text, so both are followed here:
// sorting by the final sizes gives another order in about one of five topologies with branches.

// hashOrder returns the nodes in the iteration order of a HashMap keyed by their names, which were put in the given order.
func hashOrder(nodes []*described) []*described {
	capacity := 16
	for 4*len(nodes) > 3*capacity {
		capacity *= 2
	}
	bucket := func(d *described) int { return int(javaHash(d.Name)) & (capacity - 1) }
	ordered := slices.Clone(nodes)
	slices.SortStableFunc(ordered, func(a, b *described) int { return cmp.Compare(bucket(a), bucket(b)) })
	return ordered
}

// javaHash is String.hashCode as HashMap spreads it.
func javaHash(s string) uint32 {
	var h uint32
	for _, unit := range utf16.Encode([]rune(s)) {
		h = 31*h + uint32(unit)
	}
	return h ^ h>>16
}

// compareNodes is Kafka's order: the biggest sub-tree first, then by name.
func compareNodes(a, b *described) int {
	return cmp.Or(cmp.Compare(b.size, a.size), strings.Compare(a.Name, b.Name))
}

// nodeSet is a TreeSet of nodes: a red-black tree that compares by the sizes of the moment. Its shape decides which nodes a
// new one is compared with.
type nodeSet struct{ root *setEntry }

type setEntry struct {
	node                *described
	left, right, parent *setEntry
	red                 bool
}

// all returns the nodes from left to right.
func (s *nodeSet) all() []*described {
	var nodes []*described
	var walk func(*setEntry)
	walk = func(e *setEntry) {
		if e != nil {
			walk(e.left)
			nodes = append(nodes, e.node)
			walk(e.right)
		}
	}
	walk(s.root)
	return nodes
}

// add inserts a node unless the way down meets it.
func (s *nodeSet) add(d *described) {
	var parent *setEntry
	for at := &s.root; ; {
		if *at == nil {
			*at = &setEntry{node: d, parent: parent, red: true}
			s.balance(*at)
			return
		}
		parent = *at
		switch order := compareNodes(d, parent.node); {
		case parent.node == d:
			return
		case order < 0:
			at = &parent.left
		default:
			at = &parent.right
		}
	}
}

// balance restores the colours above a new entry as TreeMap does.
func (s *nodeSet) balance(x *setEntry) {
	for x != s.root && x.parent.red {
		parent, grand := x.parent, x.parent.parent
		uncle, inner := grand.right, parent.right
		if parent == grand.right {
			uncle, inner = grand.left, parent.left
		}
		if uncle != nil && uncle.red {
			parent.red, uncle.red, grand.red = false, false, true
			x = grand
			continue
		}
		if x == inner {
			x = parent
			s.rotate(x, x == grand.left)
		}
		x.parent.red, grand.red = false, true
		s.rotate(grand, x.parent == grand.right)
	}
	s.root.red = false
}

// rotate moves an entry below its right child, or its left one.
func (s *nodeSet) rotate(p *setEntry, left bool) {
	child := p.left
	if left {
		child = p.right
	}
	switch {
	case p.parent == nil:
		s.root = child
	case p.parent.left == p:
		p.parent.left = child
	default:
		p.parent.right = child
	}
	child.parent, p.parent = p.parent, child
	if left {
		p.right, child.left = child.left, p
		if p.right != nil {
			p.right.parent = p
		}
		return
	}
	p.left, child.right = child.right, p
	if p.left != nil {
		p.left.parent = p
	}
}
