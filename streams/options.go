package streams

import "time"

// An Option adjusts one operator.
type Option interface{ operator(*operatorOptions) }

// A RepartitionOption adjusts [Stream.Repartition].
type RepartitionOption interface{ repartition(*operatorOptions) }

// A StoreOption adjusts a stateful operator and its store.
type StoreOption interface{ store(*operatorOptions) }

// A BuilderOption adjusts the whole topology.
type BuilderOption func(*Builder)

// GeneratedNames lets stateful operators go without a name: an empty one is replaced by the name that Kafka Streams would
// generate. Such names count the operators of the program, so any edit can rename stores and topics and lose their
// content; use it to take over the topics of a Java application.
func GeneratedNames() BuilderOption { return func(b *Builder) { b.generated = true } }

// operatorOptions are all options together; which of them an operator takes is a matter of the option's type.
type operatorOptions struct {
	name       string
	partitions int32
	retention  time.Duration
	unlogged   bool
}

type option func(*operatorOptions)

func (o option) operator(all *operatorOptions)    { o(all) }
func (o option) repartition(all *operatorOptions) { o(all) }
func (o option) store(all *operatorOptions)       { o(all) }

// EveryOption is an option that any operator takes.
type EveryOption interface {
	Option
	RepartitionOption
	StoreOption
}

// Named gives an operator a name in descriptions and errors instead of a generated one. For a grouping it also names the
// repartition topic.
func Named(name string) EveryOption { return option(func(o *operatorOptions) { o.name = name }) }

type repartitionOption func(*operatorOptions)

func (o repartitionOption) repartition(all *operatorOptions) { o(all) }

// Partitions sets the partition count of a repartition topic. Without it the count is that of the topics upstream.
func Partitions(n int32) RepartitionOption {
	return repartitionOption(func(o *operatorOptions) { o.partitions = n })
}

type storeOption func(*operatorOptions)

func (o storeOption) store(all *operatorOptions) { o(all) }

// Retention keeps the windows of a store for longer than late records need, for queries. It must be at least the
// window's size plus its grace, which is the default.
func Retention(d time.Duration) StoreOption {
	return storeOption(func(o *operatorOptions) { o.retention = d })
}

// NotLogged does without a changelog: the store's content is lost with its disk, and when its task moves.
func NotLogged() StoreOption { return storeOption(func(o *operatorOptions) { o.unlogged = true }) }

func operatorOpts(opts []Option) operatorOptions {
	var all operatorOptions
	for _, o := range opts {
		o.operator(&all)
	}
	return all
}

func repartitionOpts(opts []RepartitionOption) operatorOptions {
	var all operatorOptions
	for _, o := range opts {
		o.repartition(&all)
	}
	return all
}

func storeOpts(opts []StoreOption) operatorOptions {
	var all operatorOptions
	for _, o := range opts {
		o.store(&all)
	}
	return all
}
