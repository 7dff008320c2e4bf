package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
)

// kfake knows from a file of its last orderly stop what each producer wrote last, to recognise a batch that is sent again.
// After a kill that file is made from the logs, as a broker does: a producer that does not know whether its batch
// arrived before the kill sends it again, and must not write it twice.

// windowSize is how many batches of a producer are remembered: as many as it may have under way.
const windowSize = 5

// A window is the last batches of one producer in one partition, the oldest first.
type window struct {
	epoch int16
	last  []batchSequence
}

// A batchSequence is a batch's first sequence number, the one behind its last, and its offset.
type batchSequence struct {
	First  int32 `json:"first_seq"`
	Next   int32 `json:"next_seq"`
	Offset int64 `json:"offset"`
}

func (l *logRecovery) window(producerID int64) *window {
	w := l.windows[producerID]
	if w == nil {
		w = &window{}
		l.windows[producerID] = w
	}
	return w
}

// add takes the next batch. A new epoch begins anew.
func (w *window) add(epoch int16, first, records int32, offset int64) {
	if epoch != w.epoch {
		w.epoch, w.last = epoch, w.last[:0]
	}
	if len(w.last) == windowSize {
		w.last = append(w.last[:0], w.last[1:]...)
	}
	next := int32((int64(first) + int64(records)) % math.MaxInt32) // as kfake counts
	w.last = append(w.last, batchSequence{first, next, offset})
}

// A storedWindow is kfake's form of a window: a ring, with the place of the next entry.
type storedWindow struct {
	PID       int64                     `json:"pid"`
	Topic     string                    `json:"topic"`
	Partition int32                     `json:"partition"`
	Entries   [windowSize]batchSequence `json:"entries"`
	Count     int                       `json:"count"`
	At        int                       `json:"at"`
	Epoch     int16                     `json:"epoch"`
	Seen      bool                      `json:"seen"`
	NextSeq   int32                     `json:"next_seq"`
}

// storedWindows is kfake's file of them.
type storedWindows struct {
	Version int            `json:"version"`
	Windows []storedWindow `json:"windows"`
}

// writeSequences writes the file as kfake would have written it, had it stopped at the end of the logs.
func writeSequences(d *dataDir, logs []*logRecovery) error {
	file := storedWindows{Version: 1}
	for _, l := range logs {
		for _, id := range slices.Sorted(maps.Keys(l.windows)) {
			file.Windows = append(file.Windows, l.windows[id].stored(id, l.topic, l.partition))
		}
	}
	raw, err := json.Marshal(file)
	if err == nil {
		err = os.WriteFile(d.file(kfakeSequences), raw, 0o644)
	}
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

func (w *window) stored(producerID int64, topic string, partition int32) storedWindow {
	s := storedWindow{PID: producerID, Topic: topic, Partition: partition, Epoch: w.epoch, Seen: true}
	s.Count, s.At = len(w.last), len(w.last)%windowSize
	copy(s.Entries[:], w.last)
	s.NextSeq = w.last[len(w.last)-1].Next
	return s
}
