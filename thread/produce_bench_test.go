package thread

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/thread/task"
)

// ackingProducer acknowledges what was produced in batches, in order, as brokers do.
type ackingProducer struct {
	producing
	records []*kgo.Record
	promise []func(*kgo.Record, error)
}

func (p *ackingProducer) Produce(_ context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	p.records, p.promise = append(p.records, r), append(p.promise, promise)
	if len(p.records) == maxInFlight-slabRecords {
		p.acknowledge()
	}
}

func (p *ackingProducer) acknowledge() {
	for i, r := range p.records {
		p.promise[i](r, nil)
	}
	p.records, p.promise = p.records[:0], p.promise[:0]
}

// BenchmarkSend is the way of outboxes through the sink, with as many in flight as may be: slabs and outboxes have to be
// reused all the same.
func BenchmarkSend(b *testing.B) {
	s := newSink(b.Context(), &ackingProducer{})
	key, value := []byte("key-0000001"), []byte("12345678")
	topics := []string{"out"}
	b.ReportAllocs()
	for n := 0; n < b.N; n += maxTurnRecords {
		l := s.load()
		for range maxTurnRecords {
			l.out.Records = append(l.out.Records, task.OutRecord{Partition: -1, Key: key, Value: value, Timestamp: 1000})
		}
		if err := s.send(l, wordCount, topics, nil); err != nil {
			b.Fatal(err)
		}
	}
}
