// Package topology is the erased middle of the DSL: a graph of operators without their types, and the plan made of it.
// It is internal to this project.
//
// Four phases keep types out of planning and planning out of the record path:
//
//	Declare      the DSL adds a [Node] per operator to a [Graph]; Node.Build is a closure that remembers the types
//	Plan         [Graph.Build] validates, finds sub-topologies, names and sizes internal topics; it never needs a type
//	Instantiate  [Subtopology.Instantiate] runs the closures once for each task; a child asserts its parent's outlet here
//	Run          typed calls only; an [Entry] per source takes raw records, a [Sink] takes encoded ones
//
// Sub-topologies are the connected parts of the graph: nodes hang together through edges and through shared stores. A
// repartition topic cuts: its sink ends one sub-topology, its source begins another.
//
// # Names
//
// A sub-topology is named after its smallest source topic, repartition topics without the application's prefix. A topic
// is read by one sub-topology only, so the name is unique, and no edit elsewhere in the topology can change it: state
// directories and task ids survive. Kafka's ordinals depend on the order of names and appear in [Plan.Describe] only.
//
// Generated operator names follow Kafka Streams: a prefix and a counter shared by operators and stores, in the order of
// the calls. Topic names and topic configurations are Kafka Streams' own.
//
// # What is not relied upon
//
// Nothing here knows a broker. Partition counts are an argument, and everything derived from them is recomputed.
package topology
