package thread

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/thread/task"
)

// Config is what all threads of a process have in common, and what makes one of them. The owner fills in everything; it
// must not change afterwards.
type Config struct {
	AppID     string // also the group
	ClientID  string // of the process
	ProcessID string
	Endpoint  string // where other processes reach this one's REST side, or ""

	// Index of the thread, from 1. InstanceID is empty for a dynamic member, TransactionalID for at-least-once.
	Index           int
	InstanceID      string
	TransactionalID string

	Plan *topology.Plan
	// Layout returns the present layout, on any goroutine. Refresh looks at the topics again, for a task that a leader with
	// a newer layout has assigned; it is called on goroutines of the restore plane.
	Layout  func() *Layout
	Refresh func(context.Context) error

	// Client are the options that reach the brokers: addresses, TLS, SASL and what the user added.
	Client      []kgo.Opt
	Compression kgo.CompressionCodec
	Linger      time.Duration

	// Identity is checked against local state; its changelog ids are added for each task.
	Identity statestore.Identity
	// OpenEngine opens the engine of a task's state and tells its directory for errors. DiscardState moves aside the state of
	// a task that is closed. Both are called on goroutines of the restore plane.
	OpenEngine   func(taskid.ID) (engine statestore.Engine, dir string, err error)
	DiscardState func(taskid.ID) error
	// LocalTasks lists the tasks that have state on this process' disk.
	LocalTasks func() []taskid.ID

	OnDecodeError  task.Handler
	OnProcessError task.Handler
	ResetLatest    bool // begin at the end of source topics without committed position

	CommitInterval      time.Duration
	CommitTimeout       time.Duration // of one commit's requests
	SessionTimeout      time.Duration
	RebalanceTimeout    time.Duration
	HeartbeatInterval   time.Duration
	TransactionTimeout  time.Duration
	CloseTimeout        time.Duration // of a graceful stop
	UncommittedMaxBytes int64         // of this thread
	CacheBytes          int64         // read cache of one task
	MaxPollRecords      int
	FetchMaxBytes       int32

	Logger  *slog.Logger
	OnState func(from, to State) // called on the thread's goroutine
}

func (c *Config) exactlyOnce() bool { return c.TransactionalID != "" }

// name is Kafka Streams' name of the thread.
func (c *Config) name() string { return c.ClientID + "-StreamThread-" + itoa(c.Index) }
