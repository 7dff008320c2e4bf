package coordinator

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// An Action is one output of [Machine.Step], a *[Reply], *[Append], *[BadRecord] or *[Forced]. The owner carries actions out in
// order. An action is valid until the next Step; what it points to (responses, records) is not reused.
type Action interface {
	action()
	String() string
}

// Reply answers the request with the same ID. Resp has its version set and is read-only: equal answers may share one
// response. A reply whose connection is gone is dropped by the owner.
type Reply struct {
	ID   uint64
	Resp kmsg.Response
}

// Append asks the owner to append records to one partition of __consumer_offsets, as one batch and atomically, and
// to report the outcome with [Appended]. Appends to one partition must reach the log in the order emitted.
type Append struct {
	ID        uint64
	Partition int32
	Records   []Record
	Txn       *Txn // set for the offsets of a transaction: the batch belongs to that producer's open transaction
}

// BadRecord tells that a record handed over by [Loaded] could not be decoded and was left out. Records of unknown
// kinds are skipped without it, as Kafka does (KIP-915).
type BadRecord struct {
	Partition int32
	Index     int // in Loaded.Records
	Err       error
}

// Forced is the outcome of a [ForceRebalance]. If Err is nil a generation has begun: After is its number, Removed and Kept
// are what has become of the instance ids that were in the group, sorted.
type Forced struct {
	ID            uint64
	Err           *kerr.Error
	Reason        string // why it was refused, in words
	Before, After int32  // generations
	Removed, Kept []string
}

// Record is one record of __consumer_offsets in Kafka's own byte format. A nil Value is a tombstone.
type Record struct{ Key, Value []byte }

// Txn names the transaction that a batch belongs to.
type Txn struct {
	TransactionalID string
	ProducerID      int64
	ProducerEpoch   int16
}

// LogRecord is one entry of an offsets partition's log as [Loaded] hands it over. The reader either passes the whole
// log (transactional records with Txn, markers with Marker) or resolves transactions itself: then it leaves aborted
// records out and sets Txn only on those whose transaction is still open. Both give the same state, except that only
// the first puts a transaction's offsets at the marker's place among later plain commits of the same partition.
type LogRecord struct {
	Record
	Txn    *Txn      // the record is part of this transaction, whose end comes as a later Marker or as a TxnEnded event
	Marker *TxnEnded // the entry is a transaction marker and has no record
}

func (*Reply) action()     {}
func (*Append) action()    {}
func (*BadRecord) action() {}
func (*Forced) action()    {}

func (a *Reply) String() string {
	return fmt.Sprintf("reply %d %s", a.ID, kmsg.NameForKey(a.Resp.Key()))
}

func (a *Append) String() string {
	txn := ""
	if a.Txn != nil {
		txn = fmt.Sprintf(" in the transaction of producer %d epoch %d", a.Txn.ProducerID, a.Txn.ProducerEpoch)
	}
	return fmt.Sprintf("append %d: %d records to partition %d%s", a.ID, len(a.Records), a.Partition, txn)
}

func (a *BadRecord) String() string {
	return fmt.Sprintf("bad record %d in partition %d: %v", a.Index, a.Partition, a.Err)
}

func (a *Forced) String() string {
	if a.Err != nil {
		return fmt.Sprintf("force rebalance %d: %s: %s", a.ID, a.Err.Message, a.Reason)
	}
	return fmt.Sprintf("force rebalance %d: generation %d to %d, removed (%s), kept (%s)", a.ID, a.Before, a.After,
		strings.Join(a.Removed, ","), strings.Join(a.Kept, ","))
}
