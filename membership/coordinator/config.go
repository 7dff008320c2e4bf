package coordinator

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Config says how a [Machine] behaves. The zero value of every field but NewID is usable and means Kafka's default.
type Config struct {
	// Profile selects the rules; the zero value is [Kafka].
	Profile Profile

	// NewID returns the unique part of a new member id (Kafka: a random UUID); the member id is prefix + "-" + NewID(prefix).
	// prefix is the client id or the group instance id. It must never return the same value twice for one prefix. Required.
	NewID func(prefix string) string

	MinSessionTimeout time.Duration // default 6 s: group.min.session.timeout.ms
	MaxSessionTimeout time.Duration // default 30 min: group.max.session.timeout.ms

	// InitialRebalanceDelay is how long the first rebalance of an empty group waits for more members:
	// group.initial.rebalance.delay.ms. Default 3 s; negative means none.
	InitialRebalanceDelay time.Duration

	// NewMemberJoinTimeout bounds how long a new member may stay in its first JoinGroup. Default 5 min, Kafka's constant.
	NewMemberJoinTimeout time.Duration

	MaxGroupSize int // default: no limit; group.max.size

	OffsetsPartitions     int32         // default 50: offsets.topic.num.partitions
	OffsetMetadataMaxSize int           // default 4,096 bytes: offset.metadata.max.bytes
	OffsetsRetention      time.Duration // default 7 days: offsets.retention.minutes
	ExpiryInterval        time.Duration // default 10 min: offsets.retention.check.interval.ms

	// AbsentStaticsKeepClock lets the session of a static member that missed a rebalance run on instead of starting
	// anew when the rebalance completes: a series of rebalances then cannot keep a dead member for ever.
	// Off as in Kafka. (D13)
	AbsentStaticsKeepClock bool

	// AbsentStaticAfter lets a rebalance not wait for a static member that was silent for that long: it stays in the
	// group and in the leader's list, but does not stall the others for the whole rebalance timeout.
	// 0, as in Kafka, waits for everybody. (D14)
	AbsentStaticAfter time.Duration
}

// Validate reports every field that is out of bounds, by name and bound.
func (c Config) Validate() error {
	var errs []error
	if c.NewID == nil {
		errs = append(errs, errors.New("coordinator config: NewID is required"))
	}
	if c.Profile > KIP345 {
		errs = append(errs, fmt.Errorf("coordinator config: Profile %d is neither Kafka nor KIP345", c.Profile))
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"MinSessionTimeout", int64(c.MinSessionTimeout)},
		{"MaxSessionTimeout", int64(c.MaxSessionTimeout)},
		{"NewMemberJoinTimeout", int64(c.NewMemberJoinTimeout)},
		{"MaxGroupSize", int64(c.MaxGroupSize)},
		{"OffsetsPartitions", int64(c.OffsetsPartitions)},
		{"OffsetMetadataMaxSize", int64(c.OffsetMetadataMaxSize)},
		{"OffsetsRetention", int64(c.OffsetsRetention)},
		{"ExpiryInterval", int64(c.ExpiryInterval)},
		{"AbsentStaticAfter", int64(c.AbsentStaticAfter)},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("coordinator config: %s is %d; want 0 (default) or more", f.name, f.value))
		}
	}
	if full := c.withDefaults(); full.MinSessionTimeout > full.MaxSessionTimeout {
		errs = append(errs, fmt.Errorf("coordinator config: MinSessionTimeout %v is above MaxSessionTimeout %v", full.MinSessionTimeout, full.MaxSessionTimeout))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	setDefault(&c.MinSessionTimeout, 6*time.Second)
	setDefault(&c.MaxSessionTimeout, 30*time.Minute)
	setDefault(&c.InitialRebalanceDelay, 3*time.Second)
	c.InitialRebalanceDelay = max(c.InitialRebalanceDelay, 0)
	setDefault(&c.NewMemberJoinTimeout, 5*time.Minute)
	setDefault(&c.MaxGroupSize, math.MaxInt32)
	setDefault(&c.OffsetsPartitions, 50)
	setDefault(&c.OffsetMetadataMaxSize, 4096)
	setDefault(&c.OffsetsRetention, 7*24*time.Hour)
	setDefault(&c.ExpiryInterval, 10*time.Minute)
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
