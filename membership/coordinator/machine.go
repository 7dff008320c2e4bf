package coordinator

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Machine is a group coordinator. It belongs to one goroutine at a time; it holds no lock.
type Machine struct {
	cfg Config

	base    time.Time // of the first Step; instants count from here
	now     instant   // never goes back
	wall    int64     // milliseconds of Unix time, for stored timestamps
	actions []Action
	replies []*Reply // reused from step to step
	used    int      // of replies, in this step

	partitions []partitionState
	groups     map[string]*group // of loaded partitions only
	topics     map[string]topic
	topicNames map[[16]byte]string
	txns       map[int64]map[*group]struct{} // producer id -> groups with offsets pending on its transaction
	appends    map[uint64]pendingAppend
	lastAppend uint64
	timers     timerQueue
	expiry     timer
	heartbeats map[heartbeatAnswer]*kmsg.HeartbeatResponse
	settings   map[string]*settings // by group id, whether the group exists or not
	unset      settings             // of all other groups
}

// instant is monotonic time since the first Step.
type instant time.Duration

// partitionState is what the machine may say about an offsets partition's groups.
type partitionState uint8

const (
	notOwned partitionState = iota
	loading
	owned
)

type topic struct {
	id         [16]byte
	partitions int32
}

// pendingAppend is an emitted Append whose outcome is not known yet.
type pendingAppend struct {
	partition int32
	then      continuation
}

// A continuation is what remains to be done when the outcome of an append is known.
type continuation interface {
	appended(m *Machine, err *kerr.Error)
}

// New returns a coordinator that owns no offsets partition yet: it answers NOT_COORDINATOR until the owner sends
// [Loaded]. It panics if [Config.Validate] fails.
func New(cfg Config) *Machine {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	cfg = cfg.withDefaults()
	return &Machine{
		cfg:        cfg,
		partitions: make([]partitionState, cfg.OffsetsPartitions),
		groups:     make(map[string]*group),
		topics:     make(map[string]topic),
		topicNames: make(map[[16]byte]string),
		txns:       make(map[int64]map[*group]struct{}),
		appends:    make(map[uint64]pendingAppend),
		expiry:     timer{kind: expiryTimer, index: notQueued},
		heartbeats: make(map[heartbeatAnswer]*kmsg.HeartbeatResponse),
		settings:   make(map[string]*settings),
	}
}

// Step moves the clock to now, fires what is due, applies ev and returns what the owner must do, in order. The slice
// is reused: it is valid until the next Step. A now before an earlier one counts as that earlier one.
func (m *Machine) Step(now time.Time, ev Event) []Action {
	m.begin(now)
	m.fireDue()
	switch ev := ev.(type) {
	case Request:
		m.serve(ev)
	case Appended:
		m.onAppended(ev)
	case TxnEnded:
		m.onTxnEnded(ev)
	case Loading:
		m.onLoading(ev)
	case Loaded:
		m.onLoaded(ev)
	case Unloaded:
		m.onUnloaded(ev.Partition)
	case TopicChanged:
		m.onTopicChanged(ev)
	case TopicDeleted:
		m.onTopicDeleted(ev)
	case Configure:
		m.onConfigure(ev)
	case ForceRebalance:
		m.onForceRebalance(ev)
	case Tick:
	}
	return m.actions
}

func (m *Machine) begin(now time.Time) {
	if m.base.IsZero() {
		m.base = now
	}
	m.now = max(m.now, instant(now.Sub(m.base)))
	m.wall = now.UnixMilli()
	m.actions = m.actions[:0]
	m.used = 0
}

func (m *Machine) reply(id uint64, resp kmsg.Response) {
	if m.used == len(m.replies) {
		m.replies = append(m.replies, new(Reply))
	}
	r := m.replies[m.used]
	m.used++
	r.ID, r.Resp = id, resp
	m.actions = append(m.actions, r)
}

// append emits records for a partition; then runs when the owner reports the outcome.
func (m *Machine) append(partition int32, records []Record, txn *Txn, then continuation) uint64 {
	m.lastAppend++
	m.appends[m.lastAppend] = pendingAppend{partition, then}
	m.actions = append(m.actions, &Append{ID: m.lastAppend, Partition: partition, Records: records, Txn: txn})
	return m.lastAppend
}

// onAppended ignores outcomes that it does not wait for: those of a partition that was unloaded meanwhile.
func (m *Machine) onAppended(ev Appended) {
	if pending, ok := m.appends[ev.ID]; ok {
		delete(m.appends, ev.ID)
		pending.then.appended(m, ev.Err)
	}
}

// storeError is what a client is told when an append failed, as Kafka maps it.
func storeError(err *kerr.Error) *kerr.Error {
	switch err {
	case nil:
		return nil
	case kerr.UnknownTopicOrPartition, kerr.NotEnoughReplicas, kerr.RequestTimedOut:
		return kerr.CoordinatorNotAvailable
	case kerr.NotLeaderForPartition, kerr.KafkaStorageError:
		return kerr.NotCoordinator
	case kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidFetchSize:
		return kerr.UnknownServerError
	}
	return err
}

// code is the wire form of an error; nil is NONE.
func code(err *kerr.Error) int16 {
	if err == nil {
		return 0
	}
	return err.Code
}

// lookup finds a group. A nil group without an error means that this coordinator answers for the id and no such
// group exists.
func (m *Machine) lookup(id string) (*group, *kerr.Error) {
	if g := m.groups[id]; g != nil {
		return g, nil
	}
	return nil, m.answersFor(PartitionFor(id, m.cfg.OffsetsPartitions))
}

func (m *Machine) answersFor(partition int32) *kerr.Error {
	switch m.partitions[partition] {
	case owned:
		return nil
	case loading:
		return kerr.CoordinatorLoadInProgress
	}
	return kerr.NotCoordinator
}
