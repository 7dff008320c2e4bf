package task

import "github.com/millrace-io/millrace/internal/topology"

// Stats counts what a task did. The task owns it and writes plain integers; the owner publishes copies.
type Stats struct {
	// Processed counts records taken from the queues, skipped ones included.
	Processed int64
	// Emitted counts records that operators sent to topics, changelogs not included.
	Emitted int64
	// Drops counts dropped records by reason.
	Drops [topology.DropReasons]int64
}

// Dropped is the sum over all reasons.
func (s *Stats) Dropped() int64 {
	var sum int64
	for _, n := range s.Drops {
		sum += n
	}
	return sum
}
