package thread

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/internal/taskid"
)

// fakeConsumer hands out what the test puts into polls.
type fakeConsumer struct {
	consumer // calls that a test does not expect end in a nil pointer
	polls    chan kgo.Fetches
	sizes    []int32 // of a partition, as asked for
}

func (f *fakeConsumer) UpdateFetchMaxBytes(_, partition int32) { f.sizes = append(f.sizes, partition) }

func (f *fakeConsumer) PollRecords(ctx context.Context, _ int) kgo.Fetches {
	select {
	case fetches := <-f.polls:
		return fetches
	case <-ctx.Done():
		return kgo.NewErrFetch(ctx.Err())
	}
}

func fetched(offset int64) kgo.Fetches {
	return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "in", Partitions: []kgo.FetchPartition{{Records: []*kgo.Record{{Offset: offset}}}}}}}}
}

func offsetOf(f kgo.Fetches) int64 { return f.Records()[0].Offset }

func TestFetcherHandsOverOneBatchAtATime(t *testing.T) {
	client := &fakeConsumer{polls: make(chan kgo.Fetches)}
	f := newFetcher(client, 10, fetchSizes{})
	f.start(t.Context())
	client.polls <- fetched(1)
	select {
	case client.polls <- fetched(2):
		t.Fatal("the fetcher polled again although nobody took the first batch")
	default:
	}
	if got := offsetOf(<-f.batches); got != 1 {
		t.Fatalf("got the batch at %d", got)
	}
	client.polls <- fetched(2)
	if got := offsetOf(<-f.batches); got != 2 {
		t.Fatalf("got the batch at %d", got)
	}
	if _, ok := f.stop(); ok {
		t.Error("stop returned a batch although none was in hand")
	}
}

// What was polled before partitions changed must come out of stop, never after the next start.
func TestStopReturnsTheBatchInHand(t *testing.T) {
	client := &fakeConsumer{polls: make(chan kgo.Fetches)}
	f := newFetcher(client, 10, fetchSizes{})
	f.start(t.Context())
	client.polls <- fetched(7)
	batch, ok := f.stop()
	if !ok || offsetOf(batch) != 7 {
		t.Fatalf("stop returned %v, %v", batch, ok)
	}
	f.start(t.Context())
	client.polls <- fetched(8)
	if got := offsetOf(<-f.batches); got != 8 {
		t.Fatalf("after the restart came the batch at %d", got)
	}
	f.stop()
	if _, ok := f.stop(); ok {
		t.Error("a second stop returned a batch")
	}
}

func TestFetchesGrowToTheConfiguredSize(t *testing.T) {
	client := &fakeConsumer{polls: make(chan kgo.Fetches, 1)}
	f := newFetcher(client, 2, fetchSizes{max: 1 << 20, maxPartition: 100 << 10})
	poll := func(records int) {
		batch := kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "in", Partitions: []kgo.FetchPartition{{}}}}}}
		batch[0].Topics[0].Partitions[0].Records = make([]*kgo.Record, records)
		client.polls <- batch
		<-f.batches
	}
	f.start(t.Context())
	poll(2) // there may be more of this fetch
	poll(0)
	poll(1)
	poll(1)
	poll(1)
	f.stop()
	f.start(t.Context()) // with other partitions
	f.stop()
	if want := []int32{32 << 10, 64 << 10, 100 << 10, 32 << 10}; !slices.Equal(client.sizes, want) {
		t.Errorf("asked for %d bytes of a partition, want %d", client.sizes, want)
	}
}

// What the user's own options say of a partition wins, up to the bound of a whole fetch.
func TestFetchesGrowToWhatTheClientWasMadeFor(t *testing.T) {
	for name, tc := range map[string]struct {
		options []kgo.Opt
		want    fetchSizes
	}{
		"default": {nil, fetchSizes{max: 2 << 20, maxPartition: fetchPartitionBytes}},
		"option":  {[]kgo.Opt{kgo.FetchMaxPartitionBytes(48 << 10)}, fetchSizes{max: 2 << 20, maxPartition: 48 << 10}},
	} {
		client, err := (&Config{FetchMaxBytes: 2 << 20, Client: tc.options}).newConsumer()
		if err != nil {
			t.Fatal(err)
		}
		if got := configuredSizes(client); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
		client.Close()
	}
}

func TestOwnersHandOverOneAtATime(t *testing.T) {
	o := newOwners()
	id := taskid.ID{Subtopology: "words"}
	if err := o.acquire(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the task was taken away")
	cancel(gone)
	if err := o.acquire(ctx, id); !errors.Is(err, gone) {
		t.Fatalf("acquired a task that is open: %v", err)
	}
	got := make(chan error)
	go func() { got <- o.acquire(t.Context(), id) }()
	o.release(id)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	o.release(id)
}

func TestRecordPoolKeepsWhatFits(t *testing.T) {
	p := newRecordPool()
	s := p.GetRecords(100)
	p.PutRecords(s)
	if again := p.GetRecords(50); cap(again) != cap(s) {
		t.Errorf("a slice of %d was not reused, got one of %d", cap(s), cap(again))
	}
	p.PutRecords(make([]kgo.Record, pooledRecords+1))
	if got := p.GetRecords(1); cap(got) > pooledRecords {
		t.Errorf("a slice of %d records was kept", cap(got))
	}
	for range 3 {
		p.PutRecords(make([]kgo.Record, pooledRecords/2))
	}
	if p.records != pooledRecords || len(p.kept) != 2 {
		t.Errorf("%d records in %d slices were kept, want %d in 2", p.records, len(p.kept), pooledRecords)
	}
	if got := p.GetRecords(pooledRecords); cap(got) < pooledRecords || p.records != pooledRecords/2 {
		t.Errorf("got room for %d records, %d are left; want a new slice in place of one that is too short", cap(got), p.records)
	}
}

func TestSparesGiveBackTheLastFirst(t *testing.T) {
	s := spares[int]{most: 2}
	for n := range 3 {
		s.keep(n + 1)
	}
	for _, want := range []int{2, 1, 0} {
		if got, ok := s.take(); got != want || ok != (want > 0) {
			t.Errorf("took %d, %v; want %d", got, ok, want)
		}
	}
}

func TestLifecycleKnowsKafkasStates(t *testing.T) {
	var seen []string
	l := lifecycle{notify: func(from, to State) { seen = append(seen, from.String()+">"+to.String()) }}
	for _, s := range []State{Starting, PartitionsAssigned, Running, Running, PartitionsRevoked, PartitionsAssigned, PendingShutdown, Dead} {
		l.become(s)
	}
	if len(seen) != 7 || seen[1] != "STARTING>PARTITIONS_ASSIGNED" || seen[6] != "PENDING_SHUTDOWN>DEAD" {
		t.Errorf("changes %v", seen)
	}
	defer func() {
		if recover() == nil {
			t.Error("a dead thread came back to life")
		}
	}()
	l.become(Running)
}
