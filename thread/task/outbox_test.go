package task_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/thread/task"
)

func TestOutboxKeepsNullsApartFromEmpty(t *testing.T) {
	tk := copyAll.start(t, nil)
	enqueue(t, tk, "a", topology.Record{Offset: 0, Value: []byte{}}, topology.Record{Offset: 1, Key: []byte{}})
	process(t, tk, 2)
	out := tk.Outbox().Records
	if out[0].Key != nil || out[0].Value == nil || out[1].Key == nil || out[1].Value != nil {
		t.Fatalf("nulls got lost: %#v", out)
	}
	if out[0].Partition != -1 {
		t.Errorf("partition %d, want the default partitioner", out[0].Partition)
	}
}

// TestOutboxOwnsItsBytes feeds records of all sizes around the arena's chunk size, overwrites the sources, and compares.
func TestOutboxOwnsItsBytes(t *testing.T) {
	tk := copyAll.start(t, nil)
	out := new(task.Outbox)
	for round := range 3 {
		var want [][]byte
		for i, size := range []int{0, 1, 511, 512, 513, 4000, 60000, 65535, 65536, 65537, 200000, 3, 30000, 30000, 30000} {
			value := bytes.Repeat([]byte{byte(i + round)}, size)
			header := []byte{byte(i), 1, 2}
			enqueue(t, tk, "a", topology.Record{
				Key: fmt.Append(nil, i), Value: value, Offset: int64(i), Headers: []topology.Header{{Key: "h", Value: header}, {Key: "null"}},
			})
			process(t, tk, 1)
			want = append(want, bytes.Clone(value))
			clear(value)
			clear(header)
		}
		out = tk.SwapOutbox(out)
		for i, r := range out.Records {
			if string(r.Key) != fmt.Sprint(i) || !bytes.Equal(r.Value, want[i]) {
				t.Fatalf("round %d: record %d was overwritten: key %q, %d bytes", round, i, r.Key, len(r.Value))
			}
			if len(r.Headers) != 2 || !bytes.Equal(r.Headers[0].Value, []byte{byte(i), 1, 2}) || r.Headers[1].Value != nil {
				t.Fatalf("round %d: record %d has headers %v", round, i, r.Headers)
			}
		}
		out.Reset()
		if len(out.Records) != 0 {
			t.Fatal("a reset outbox holds records")
		}
	}
}

func TestPartitionKey(t *testing.T) {
	whole := task.OutRecord{Key: []byte("key")}
	windowed := task.OutRecord{Key: []byte("key12345678"), KeySuffix: 8}
	empty := task.OutRecord{Key: []byte("12345678"), KeySuffix: 8}
	if key := empty.PartitionKey(); key == nil || len(key) != 0 {
		t.Errorf("the empty key in a window is partitioned by %q", key)
	}
	if string(whole.PartitionKey()) != "key" || string(windowed.PartitionKey()) != "key" || (&task.OutRecord{}).PartitionKey() != nil {
		t.Fatal("wrong bytes for the partitioner")
	}
}

// TestProcessDoesNotAllocate holds the task's share of the record path: queue, choice, arena, outbox.
func TestProcessDoesNotAllocate(t *testing.T) {
	tk := copyAll.start(t, nil)
	batch := make([]topology.Record, 100)
	for i := range batch {
		batch[i] = rec(int64(i), int64(i), "value")
	}
	out := new(task.Outbox)
	turn := func() {
		tk.EnqueueAt(0, batch)
		tk.EnqueueAt(1, batch)
		if n, err := tk.Process(1000); n != 200 || err != nil {
			t.Fatalf("Process = %d, %v", n, err)
		}
		out = tk.SwapOutbox(out)
		out.Reset()
	}
	turn()
	turn()
	if allocs := testing.AllocsPerRun(20, turn); allocs != 0 {
		t.Errorf("%v allocations for 200 records, want 0", allocs)
	}
}
