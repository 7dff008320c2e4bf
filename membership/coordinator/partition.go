package coordinator

import "unicode/utf16"

// PartitionFor returns the partition of __consumer_offsets that holds a group: Kafka's abs(hash of the Java string)
// modulo the number of partitions.
func PartitionFor(group string, partitions int32) int32 {
	var hash int32
	for _, r := range group {
		if hi, lo := utf16.EncodeRune(r); hi != '\uFFFD' {
			hash = 31*(31*hash+hi) + lo
			continue
		}
		hash = 31*hash + r
	}
	// Clearing the sign of the least value gives 0, which is what Kafka's abs maps it to; any other negative value is negated.
	if hash < 0 {
		hash = -hash & 0x7fffffff
	}
	return hash % partitions
}
