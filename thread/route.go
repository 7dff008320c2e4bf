package thread

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/internal/topology"
)

// partition names one partition of one topic.
type partition struct {
	topic string
	index int32
}

// route is where the records of a partition go. next is the offset after the last record that was seen: what comes
// below it was seen before. Positions for commits are the task's affair.
type route struct {
	owner  *owned
	input  int
	next   int64
	failed time.Time // since when fetching fails; zero while it works
	absent time.Time // since when it fails because the topic is not there
}

// accept gives a batch of fetched records to the tasks. Records of partitions that nobody owns (they were fetched before the
// partition went away) are dropped; their next owner reads them again.
//
// The records' keys and values alias the fetch buffer, which lives as long as they do.
func (t *Thread) accept(batch kgo.Fetches) error {
	for _, fetch := range batch {
		for _, topic := range fetch.Topics {
			for i := range topic.Partitions {
				if err := t.acceptPartition(topic.Topic, &topic.Partitions[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (t *Thread) acceptPartition(topic string, fetched *kgo.FetchPartition) error {
	r := t.routes[partition{topic, fetched.Partition}]
	if fetched.Err != nil {
		return t.fetchFailed(topic, fetched, r)
	}
	if len(fetched.Records) == 0 {
		return nil
	}
	if r == nil {
		t.stats.Stale.Add(int64(len(fetched.Records)))
		return nil
	}
	r.failed, r.absent = time.Time{}, time.Time{}
	records := t.slab[:0]
	for _, rec := range fetched.Records {
		if rec.Offset >= r.next {
			r.next = rec.Offset + 1
			if !rec.Attrs.IsControl() {
				records = append(records, topology.Record{
					Key:         rec.Key,
					Value:       rec.Value,
					Headers:     headers(rec.Headers),
					Timestamp:   rec.Timestamp.UnixMilli(),
					Offset:      rec.Offset,
					LeaderEpoch: rec.LeaderEpoch,
				})
			}
		}
		rec.Recycle()
	}
	r.owner.task.EnqueueAt(r.input, records) // copies them
	r.owner.task.SeenAt(r.input, r.next)
	t.stats.RecordsIn.Add(int64(len(records)))
	clear(records) // lets go of the fetch buffer
	t.slab = records
	return nil
}

// headers converts record headers; most records have none. What it allocates lives as long as the record.
func headers(from []kgo.RecordHeader) []topology.Header {
	if len(from) == 0 {
		return nil
	}
	converted := make([]topology.Header, len(from))
	for i, h := range from {
		converted[i] = topology.Header{Key: h.Key, Value: h.Value}
	}
	return converted
}

// addRoutes makes the thread consume the inputs of an opened task.
func (t *Thread) addRoutes(o *owned) {
	add := map[string]map[int32]kgo.Offset{}
	for _, in := range o.inputs {
		t.routes[in.partition] = &route{owner: o, input: in.index, next: in.start}
		if add[in.partition.topic] == nil {
			add[in.partition.topic] = map[int32]kgo.Offset{}
		}
		add[in.partition.topic][in.partition.index] = kgo.NewOffset().At(in.start)
	}
	t.consumer.AddConsumePartitions(add)
}

// removeRoutes stops consuming the inputs of a task.
func (t *Thread) removeRoutes(o *owned) {
	remove := map[string][]int32{}
	for _, in := range o.inputs {
		delete(t.routes, in.partition)
		remove[in.partition.topic] = append(remove[in.partition.topic], in.partition.index)
	}
	t.consumer.RemoveConsumePartitions(remove)
}

// changeRoutes runs change while no poll is under way, with the batch that was in hand given to the tasks first.
func (t *Thread) changeRoutes(change func()) error {
	batch, ok := t.fetcher.stop()
	var err error
	if ok {
		err = t.accept(batch)
	}
	change()
	t.fetcher.start(t.ctx)
	return err
}
