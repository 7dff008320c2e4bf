package streams

import (
	"fmt"
	"regexp"

	"github.com/millrace-io/millrace/internal/topology"
)

// Repartition sends the stream through a topic of the application's own, "<app>-<name>-repartition", so that records
// with equal keys meet in one task, or are spread over another number of partitions. Records without a key are dropped
// and counted. Timestamps and headers survive.
func (s Stream[K, V]) Repartition(name string, opts ...RepartitionOption) Stream[K, V] {
	const operator = "Repartition"
	all := repartitionOpts(opts)
	if all.partitions < 0 {
		s.b.fail(operator, "Partitions(%d) is negative", all.partitions)
	}
	if name == "" {
		if !s.b.generated {
			s.b.fail(operator, "needs a name for its topic, or generated names by the builder option GeneratedNames")
		}
		name = s.b.graph.NewName("KSTREAM-REPARTITION-")
	}
	return s.repartitioned(operator, name, all.partitions)
}

// generatedBase matches bases that Kafka Streams keeps out of the names of the three nodes.
var generatedBase = regexp.MustCompile(`^KSTREAM.*-[0-9]{10}$`)

// repartitioned adds the three nodes of a repartitioning: a filter of missing keys, a sink, and the source of the next
// sub-topology. The counter moves three times whether the names are used or not, as in Kafka Streams.
func (s Stream[K, V]) repartitioned(operator, base string, partitions int32) Stream[K, V] {
	b := s.b
	topic := topology.RepartitionTopic(base)
	sink, filter, source := b.repartitionNames(topic, base)
	key, value := need(b, operator, "key", s.key), need(b, operator, "value", s.value)
	node := func(name string, topics ...string) topology.Node {
		return topology.Node{
			Kind: topology.Processor, Name: name, Operator: operator, Call: call(),
			Topics: topics, Internal: len(topics) > 0, Partitions: partitions,
		}
	}
	keyed := attach(b, s.node, node(filter), func(at site, out *outlet[K, V]) (receiver[K, V], error) {
		return &keyedNode[K, V]{site: at, out: out}, nil
	})
	addSink(b, keyed, node(sink, topic), key, value)
	return Stream[K, V]{b: b, node: addSource(b, node(source, topic), key, value), key: key, value: value}
}

func (b *Builder) repartitionNames(topic, base string) (sink, filter, source string) {
	sink, filter, source = b.graph.NewName("KSTREAM-SINK-"), b.graph.NewName("KSTREAM-FILTER-"), b.graph.NewName("KSTREAM-SOURCE-")
	if !generatedBase.MatchString(base) {
		return topic + "-sink", topic + "-filter", topic + "-source"
	}
	return sink, filter, source
}

// keyedNode lets records with a key through.
type keyedNode[K, V any] struct {
	site
	out *outlet[K, V]
}

func (n *keyedNode[K, V]) receive(r record[K, V]) error {
	if r.noKey {
		return n.drop(topology.DropRepartitionNullKey)
	}
	return n.out.forward(r)
}

func decodeError(part string, err error) error { return fmt.Errorf("%s: %w", part, err) }
