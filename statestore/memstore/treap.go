package memstore

import "hash/maphash"

// node is a node of a persistent treap: ordered by key, a heap by priority, and never changed once it is reachable from
// a published root. A write copies the path to the root, so a root is a snapshot for free.
//
// The priority is a hash of the key: the shape depends on the content alone, not on the order of writes.
type node struct {
	key, value  []byte
	priority    uint64
	left, right *node
}

var seed = maphash.MakeSeed()

func leaf(key, value []byte) *node {
	return &node{key: key, value: value, priority: maphash.Bytes(seed, key)}
}

// with returns a copy of n with other children.
func (n *node) with(left, right *node) *node {
	return &node{key: n.key, value: n.value, priority: n.priority, left: left, right: right}
}

func (n *node) get(key []byte) (*node, bool) {
	for n != nil {
		switch {
		case string(key) < string(n.key):
			n = n.left
		case string(key) > string(n.key):
			n = n.right
		default:
			return n, true
		}
	}
	return nil, false
}

// split returns the keys below at, and the rest.
func (n *node) split(at []byte) (below, rest *node) {
	switch {
	case n == nil:
		return nil, nil
	case string(n.key) < string(at):
		mid, rest := n.right.split(at)
		return n.with(n.left, mid), rest
	default:
		below, mid := n.left.split(at)
		return below, n.with(mid, n.right)
	}
}

// join puts together two treaps of which every key of the first is below every key of the second.
func join(a, b *node) *node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.priority > b.priority:
		return a.with(a.left, join(a.right, b))
	default:
		return b.with(join(a, b.left), b.right)
	}
}

// deleteRange returns n without the keys lo <= key < hi.
func (n *node) deleteRange(lo, hi []byte) *node {
	below, rest := n.split(lo)
	_, above := rest.split(hi)
	return join(below, above)
}

// delete returns n without key.
func (n *node) delete(key []byte) *node { return n.deleteRange(key, successor(key)) }

// set returns n with key set to value; it keeps both slices.
func (n *node) set(key, value []byte) *node {
	below, rest := n.split(key)
	_, above := rest.split(successor(key))
	return join(join(below, leaf(key, value)), above)
}

// successor is the smallest key above key.
func successor(key []byte) []byte { return append(key[:len(key):len(key)], 0) }

// scan calls fn for lo <= key < hi in order until it returns false, and says whether it went on to the end.
func (n *node) scan(lo, hi []byte, fn func(key, value []byte) bool) bool {
	if n == nil {
		return true
	}
	if string(n.key) >= string(lo) {
		if !n.left.scan(lo, hi, fn) {
			return false
		}
		if string(n.key) < string(hi) && !fn(n.key, n.value) {
			return false
		}
	}
	return string(n.key) >= string(hi) || n.right.scan(lo, hi, fn)
}
