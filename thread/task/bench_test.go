package task_test

import (
	"testing"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/thread/task"
)

// BenchmarkProcess is what a task costs around its operators: queue, choice of the next record, outbox. The operator
// copies the record.
func BenchmarkProcess(b *testing.B) {
	const records = 512
	for _, bench := range []struct {
		name   string
		topics []string
	}{
		{"one input", []string{"a"}},
		{"two inputs by timestamp", []string{"a", "b"}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			tk := script{process: func(k *kit, r *topology.Record) error { k.emit(r); return nil }}.start(b, nil)
			batch := make([]topology.Record, records/len(bench.topics))
			for i := range batch {
				batch[i] = rec(int64(i), int64(1000+i), "a value of some thirty-two bytes")
			}
			out := new(task.Outbox)
			b.ReportAllocs()
			for n := 0; n < b.N; n += records {
				for _, topic := range bench.topics {
					enqueue(b, tk, topic, batch...)
				}
				process(b, tk, records)
				out = tk.SwapOutbox(out)
				out.Reset()
			}
		})
	}
}
