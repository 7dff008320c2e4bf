package topology

// Header is one record header.
type Header struct {
	Key   string
	Value []byte
}

// Record is a raw record as it came from a topic. A nil Key or Value is Kafka's null; an empty one is a value.
type Record struct {
	Key, Value  []byte
	Headers     []Header
	Timestamp   int64 // ms
	Offset      int64
	LeaderEpoch int32
}
