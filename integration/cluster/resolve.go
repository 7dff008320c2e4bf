package cluster

import (
	"slices"

	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A resolver reads a log with transactions in order and keeps what is in force: the last value of each key outside of
// open transactions, where a transaction's records take effect at its commit marker, and the records of transactions
// that no marker has ended. Its size is that of the live keys, however long the log is.
type resolver struct {
	live  map[string]versioned
	turns int
	open  map[int64][]coordinator.LogRecord // by producer id
}

// A versioned value knows when it took effect, in turns of the log.
type versioned struct {
	turn  int
	value []byte
}

func newResolver() *resolver {
	return &resolver{live: map[string]versioned{}, open: map[int64][]coordinator.LogRecord{}}
}

// read takes the next record of the log.
func (r *resolver) read(rec *kgo.Record) {
	if rec.Attrs.IsControl() {
		if commit, ok := marker(rec); ok {
			r.end(rec.ProducerID, commit)
		}
		return
	}
	if !rec.Attrs.IsTransactional() {
		r.set(rec.Key, rec.Value)
		return
	}
	r.open[rec.ProducerID] = append(r.open[rec.ProducerID], coordinator.LogRecord{
		Record: coordinator.Record{Key: rec.Key, Value: rec.Value},
		Txn:    &coordinator.Txn{ProducerID: rec.ProducerID, ProducerEpoch: rec.ProducerEpoch},
	})
}

func (r *resolver) end(producerID int64, commit bool) {
	records := r.open[producerID]
	delete(r.open, producerID)
	if !commit {
		return
	}
	for _, rec := range records {
		r.set(rec.Key, rec.Value)
	}
}

func (r *resolver) set(key, value []byte) {
	r.turns++
	if value == nil {
		delete(r.live, string(key))
		return
	}
	r.live[string(key)] = versioned{r.turns, value}
}

// inForce returns what the log amounts to: decided records in the order they took effect, then undecided ones.
func (r *resolver) inForce() []coordinator.LogRecord {
	keys := make([]string, 0, len(r.live))
	for key := range r.live {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return r.live[a].turn - r.live[b].turn })
	records := make([]coordinator.LogRecord, 0, len(keys))
	for _, key := range keys {
		records = append(records, coordinator.LogRecord{Record: coordinator.Record{Key: []byte(key), Value: r.live[key].value}})
	}
	for _, id := range r.openProducers() {
		records = append(records, r.open[id]...)
	}
	return records
}

// openProducers returns the producers with undecided records, in ascending order.
func (r *resolver) openProducers() []int64 {
	ids := make([]int64, 0, len(r.open))
	for id := range r.open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
