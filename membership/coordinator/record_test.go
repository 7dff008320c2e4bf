package coordinator

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Offsets of every version that Kafka wrote are read, and newer records replace older ones whatever their versions.
func TestOffsetsOfAllVersionsAreRead(t *testing.T) {
	for version := int16(0); version <= offsetValueVersion; version++ {
		tp := topicPartition{"t", 0}
		v := kmsg.NewOffsetCommitValue()
		v.Version, v.Offset, v.Metadata, v.CommitTimestamp = version, 42, "m", 1000
		if version == expiringValueVersion {
			v.ExpireTimestamp = 2000
		}
		if version >= 3 {
			v.LeaderEpoch = 5
		}
		if version >= 4 {
			v.TopicID = topicID(1)
		}
		m := New(Config{OffsetsPartitions: 1, NewID: func(string) string { return "" }})
		older := offsetRecord("g", tp, topicID(1), offset{at: 7, expires: noExpiry})
		actions := m.Step(time.Unix(0, 0), Loaded{Records: []LogRecord{{Record: older}, {Record: Record{offsetKey("g", tp), v.AppendTo(nil)}}}})
		if len(actions) != 0 {
			t.Fatalf("version %d: %v", version, actions)
		}
		want := offset{at: 42, leaderEpoch: -1, metadata: "m", committed: 1000, expires: noExpiry}
		if version >= 3 {
			want.leaderEpoch = 5
		}
		if version == expiringValueVersion {
			want.expires = 2000
		}
		got := m.groups["g"].offsets[tp]
		got.order = 0
		if got != want {
			t.Errorf("version %d is read as %+v, want %+v", version, got, want)
		}
	}
}

// The version that is written depends on what is known and asked for.
func TestOffsetRecordVersions(t *testing.T) {
	for _, test := range []struct {
		topic   [16]byte
		expires int64
		want    int16
	}{{topicID(1), noExpiry, 4}, {[16]byte{}, noExpiry, 3}, {topicID(1), 5000, 1}} {
		r := offsetRecord("g", topicPartition{"t", 0}, test.topic, offset{at: 1, expires: test.expires})
		v := kmsg.NewOffsetCommitValue()
		if err := v.ReadFrom(r.Value); err != nil || v.Version != test.want {
			t.Errorf("%+v is written in version %d (%v)", test, v.Version, err)
		}
		if v.Version == offsetValueVersion && v.TopicID != test.topic {
			t.Errorf("the topic id is %x", v.TopicID)
		}
	}
}
