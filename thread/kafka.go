package thread

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/classic"
)

// Group is what a thread needs of its group membership: events, a token for commits that the driver adds by itself, and
// offsets. [classic.Driver] is one.
type Group interface {
	Events() <-chan membership.Event
	RevokeDone()
	Token() (membership.CommitToken, bool)
	Commit(ctx context.Context, offsets []classic.Offset) error
	CommitTxn(ctx context.Context, txnID string, producerID int64, epoch int16, offsets []classic.Offset) error
	Committed(ctx context.Context, partitions []classic.TopicPartition) (map[classic.TopicPartition]classic.Offset, error)
	InputsChanged()
	Err() error
	Retire(leave classic.LeaveMode) (place classic.Place, leaves bool)
}

// consumer is the part of a Kafka client that fetches: partitions are added and removed by hand, no group of the client's
// own is involved.
type consumer interface {
	PollRecords(ctx context.Context, maxRecords int) kgo.Fetches
	AddConsumePartitions(map[string]map[int32]kgo.Offset)
	RemoveConsumePartitions(map[string][]int32)
	UpdateFetchMaxBytes(maxBytes, maxPartBytes int32)
}

// producing is the part of a Kafka client that produces.
type producing interface {
	Produce(ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error))
	Flush(ctx context.Context) error
	AbortBufferedRecords(ctx context.Context) error
	BeginTransaction() error
	EndTransaction(ctx context.Context, commit kgo.TransactionEndTry) error
	ProducerID(ctx context.Context) (id int64, epoch int16, err error)
	Close()
}
