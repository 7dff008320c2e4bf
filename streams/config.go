package streams

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
)

// Config says where and how an application runs. The zero value of every field but AppID and Brokers is usable and means
// the documented default. Durations are real time; sizes are bytes. A Config is read once, by [New].
//
// Printed or logged, a Config shows neither passwords nor keys.
type Config struct {
	// AppID names the application: it is the consumer group id, the prefix of internal topics and of transactional ids,
	// and a directory below StateDir. Required; letters, digits, '.', '_' and '-', at most 150 of them.
	AppID string

	// ClientID is this process' name within the application, unlike that of any other replica: a StatefulSet's pod name,
	// say. With it the process' stream threads are static members of the group (KIP-345), and a restart within
	// SessionTimeout moves no task. Without it the persisted process id takes its place and membership is dynamic.
	ClientID string

	// Brokers are the addresses, host:port, to begin with. Required.
	Brokers []string

	// StateDir holds local state, below a directory named after AppID. Default: "millrace" in the temporary directory,
	// which is fit for trying things out only, as the state is worth keeping between restarts.
	StateDir string

	// Threads is the number of stream threads, 1 to 1000. Default 1.
	Threads int

	// Guarantee is AtLeastOnce (default) or ExactlyOnce.
	Guarantee Guarantee

	// CommitInterval is the time between commits. Default 1 s, with ExactlyOnce 100 ms.
	CommitInterval time.Duration

	// Membership is by default static when ClientID is set and dynamic otherwise.
	Membership Membership

	// SessionTimeout is how long the group waits for a silent member before its tasks go to others; for a static member
	// this is the time a restart may take. It must lie within the brokers' bounds (group.min.session.timeout.ms and
	// group.max.session.timeout.ms, by default 6 s and 30 min). Default 120 s for static, 45 s for dynamic members.
	SessionTimeout time.Duration

	// RebalanceTimeout is how long a rebalance waits for a member that has tasks to give up. Default 60 s.
	RebalanceTimeout time.Duration

	// HeartbeatInterval is the time between heartbeats, below a third of SessionTimeout. Default 3 s.
	HeartbeatInterval time.Duration

	// TransactionTimeout is the longest time that a transaction may be open, before the broker aborts it. It must exceed
	// CommitInterval, and must not exceed the brokers' transaction.max.timeout.ms. Default 30 s. ExactlyOnce only.
	TransactionTimeout time.Duration

	// ProgressTimeout ends a thread that has had input and made no progress for so long, whether a user function hangs or
	// the brokers do not answer, so that its tasks can go elsewhere. It takes the place of max.poll.interval.ms, but
	// unlike that it never ends a thread that is slow but moves. Default 10 min; negative: never.
	ProgressTimeout time.Duration

	// StartTimeout bounds the time in which the brokers must answer when the application starts. Default 30 s.
	StartTimeout time.Duration

	// MetadataMaxAge is how often the process looks whether its source topics have more partitions than before, Kafka's
	// metadata.max.age.ms. Records of new partitions wait at most so long. Default 1 min.
	MetadataMaxAge time.Duration

	// CloseTimeout bounds a graceful stop; what is not committed by then is given up, as after a crash. Default 60 s.
	CloseTimeout time.Duration

	// CloseMode says whether closing leaves the group. By default static members stay and dynamic members leave.
	CloseMode CloseMode

	// RemoveSurplus makes a process of static members that starts with fewer threads than before remove the instance ids of
	// the threads that it does not have any more, all at once. Otherwise their tasks wait for the end of their sessions.
	RemoveSurplus bool

	// OffsetReset says where to begin on a source topic without committed offset: Earliest (default) or Latest. An
	// internal topic always begins at its earliest record, and so does a partition that is added while the process runs.
	OffsetReset OffsetReset

	// RESTAddr is where the REST side listens, host:port. Without host it listens on the loopback interface only. Empty:
	// no server; use [App.Handler] in a server of your own.
	RESTAddr string

	// AdvertisedEndpoint is the host:port that other processes are told to reach this one's REST side at. Default: the
	// address that the REST side listens on.
	AdvertisedEndpoint string

	// ReplicationFactor of internal topics. Default: the brokers' default.
	ReplicationFactor int16

	// Compression of produced records, in Kafka's words: none, gzip, snappy, lz4 or zstd. Default snappy.
	Compression string

	// Linger is how long a produced record may wait for others to share its batch. Default 5 ms; negative: not at all.
	Linger time.Duration

	// StateMemory bounds the caches of local state of the whole process. Default 64 MiB.
	StateMemory int64

	// StateFlushInterval is how long committed state may stay in memory before it is written to disk, give or take a quarter:
	// what a killed process has to read again from its changelogs. Default 30 s.
	StateFlushInterval time.Duration

	// UncommittedMaxBytes is how much uncommitted state the process holds before it commits early, Kafka's
	// statestore.uncommitted.max.bytes. Default 64 MiB.
	UncommittedMaxBytes int64

	// BufferedRecords bounds the records that a thread takes from a poll, Kafka's max.poll.records. Default 2000.
	BufferedRecords int

	// FetchMaxBytes bounds one fetch of a thread from one broker, Kafka's fetch.max.bytes. Default 8 MiB.
	FetchMaxBytes int32

	// Logger gets what happens, seldom more than a line per rebalance. Default: slog.Default().
	Logger *slog.Logger

	// TLS, when set, is used for every connection to the brokers.
	TLS *tls.Config

	// SASL, when set, authenticates every connection to the brokers.
	SASL sasl.Mechanism

	// OnDecodeError decides about a record that a serde cannot decode. Default: fail.
	OnDecodeError Handler

	// OnProcessError decides about a record at which a user function failed or panicked. Default: fail.
	OnProcessError Handler

	// OnThreadError decides what follows when a stream thread has died: by default the application ends. It is not asked when
	// the thread was fenced, because a thread that came back with the same instance id would fence the other process.
	OnThreadError func(*Error) ThreadDecision

	// OnStateChange is told every change of [App.State], in order, from one goroutine. It must not block for long.
	OnStateChange func(from, to State)

	// KafkaOptions are applied to every Kafka client before Millrace's own options, which win where correctness depends
	// on them.
	KafkaOptions []kgo.Opt
}

// Guarantee is what a failure may do to results.
type Guarantee uint8

const (
	// AtLeastOnce repeats what was not committed: after a failure, input may be processed again.
	AtLeastOnce Guarantee = iota
	// ExactlyOnce runs everything in Kafka transactions, so that output, state and input positions move together.
	ExactlyOnce
)

// String returns Kafka's name of the guarantee.
func (g Guarantee) String() string {
	if g == ExactlyOnce {
		return "exactly_once_v2"
	}
	return "at_least_once"
}

// Membership says how a process' threads are known to the group.
type Membership uint8

const (
	// MembershipByClientID is static when Config.ClientID is set, dynamic otherwise.
	MembershipByClientID Membership = iota
	// Static members keep their tasks over a restart; they need a ClientID.
	Static
	// Dynamic members are new after each restart.
	Dynamic
)

// CloseMode says what closing does to the group membership.
type CloseMode uint8

const (
	// CloseDefault lets static members stay and dynamic members leave.
	CloseDefault CloseMode = iota
	// Leave gives the tasks up at once.
	Leave
	// Remain keeps the tasks assigned until the session times out.
	Remain
)

// OffsetReset says where reading begins when no offset is committed.
type OffsetReset uint8

const (
	// Earliest begins at the oldest record that is still there.
	Earliest OffsetReset = iota
	// Latest begins at what comes after the start.
	Latest
)

const (
	defaultUncommitted = 64 << 20
	defaultStateMemory = 64 << 20
	defaultFetchBytes  = 8 << 20
	maxThreads         = 1000
	maxAppID           = 150 // leaves room for "-<store>-changelog" within Kafka's 249
)

// static tells whether threads have instance ids.
func (c *Config) static() bool {
	return c.Membership == Static || c.Membership == MembershipByClientID && c.ClientID != ""
}

// withDefaults returns the configuration with every zero value replaced by what it stands for.
func (c Config) withDefaults() Config {
	setDefault(&c.StateDir, filepath.Join(os.TempDir(), "millrace"))
	setDefault(&c.Threads, 1)
	setDefault(&c.CommitInterval, pick(c.Guarantee == ExactlyOnce, 100*time.Millisecond, time.Second))
	setDefault(&c.SessionTimeout, pick(c.static(), 120*time.Second, 45*time.Second))
	setDefault(&c.RebalanceTimeout, 60*time.Second)
	setDefault(&c.HeartbeatInterval, min(3*time.Second, c.SessionTimeout/3))
	setDefault(&c.TransactionTimeout, 30*time.Second)
	setDefault(&c.ProgressTimeout, 10*time.Minute)
	setDefault(&c.StartTimeout, 30*time.Second)
	setDefault(&c.MetadataMaxAge, time.Minute)
	setDefault(&c.CloseTimeout, 60*time.Second)
	setDefault(&c.ReplicationFactor, -1)
	setDefault(&c.Compression, "snappy")
	setDefault(&c.Linger, 5*time.Millisecond)
	setDefault(&c.StateMemory, defaultStateMemory)
	setDefault(&c.StateFlushInterval, 30*time.Second)
	setDefault(&c.UncommittedMaxBytes, defaultUncommitted)
	setDefault(&c.BufferedRecords, 2000)
	setDefault(&c.FetchMaxBytes, defaultFetchBytes)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func pick[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}
