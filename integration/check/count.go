package check

import "encoding/binary"

// RunningCounts is the replay of a count per key: for each partition of its input, one record per input record
// with the key and the count so far, 8 bytes big-endian, stamped with the latest time of the key's records.
func RunningCounts(input Topic) Topic {
	type state struct {
		n  uint64
		at int64
	}
	out := make(Topic, len(input))
	for p, records := range input {
		counts := map[string]state{}
		for _, r := range records {
			s := counts[string(r.Key)]
			if s.n++; s.n == 1 || r.Timestamp > s.at {
				s.at = r.Timestamp
			}
			counts[string(r.Key)] = s
			out[p] = append(out[p], Record{Key: r.Key, Value: binary.BigEndian.AppendUint64(nil, s.n), Timestamp: s.at})
		}
	}
	return out
}

// Totals is how often each key occurs.
func Totals(input Topic) map[string]uint64 {
	totals := map[string]uint64{}
	for _, records := range input {
		for _, r := range records {
			totals[string(r.Key)]++
		}
	}
	return totals
}

// LastCounts is the last count of each key in a sink or changelog of counts. A null value deletes the key.
func LastCounts(sink Topic) (map[string]uint64, error) {
	last := map[string]uint64{}
	for _, records := range sink {
		for _, r := range records {
			if r.Value == nil {
				delete(last, string(r.Key))
				continue
			}
			if len(r.Value) != 8 {
				return nil, &Difference{At: -1, Kind: "changed", Detail: r.String() + " is no count"}
			}
			last[string(r.Key)] = binary.BigEndian.Uint64(r.Value)
		}
	}
	return last, nil
}
