package clients

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// offsetsTopic holds what the coordinator keeps, in Kafka's own format.
const offsetsTopic = "__consumer_offsets"

// groupKeyVersion marks the key of a record that describes a whole group.
const groupKeyVersion = 2

// A snapshot is one state of a group that the coordinator wrote down.
type snapshot struct {
	generation int32
	members    map[string]string // member id by instance id, of static members
	dynamic    int               // members without an instance id
}

// ids are the instance ids, sorted.
func (s snapshot) ids() string { return strings.Join(slices.Sorted(maps.Keys(s.members)), " ") }

// history reads everything that was written about a group, in order.
func history(ctx context.Context, addr, group string) (all []snapshot, err error) {
	err = readTopic(ctx, addr, offsetsTopic, kgo.ReadUncommitted(), func(r *kgo.Record) error {
		if len(r.Key) < 2 || binary.BigEndian.Uint16(r.Key) != groupKeyVersion || r.Value == nil {
			return nil
		}
		var key kmsg.GroupMetadataKey
		var value kmsg.GroupMetadataValue
		if err := key.ReadFrom(r.Key); err != nil {
			return fmt.Errorf("group record at offset %d: key: %w", r.Offset, err)
		}
		if key.Group != group {
			return nil
		}
		if err := value.ReadFrom(r.Value); err != nil {
			return fmt.Errorf("group record at offset %d: %w", r.Offset, err)
		}
		s := snapshot{generation: value.Generation, members: map[string]string{}}
		for _, m := range value.Members {
			if m.InstanceID == nil {
				s.dynamic++
			} else {
				s.members[*m.InstanceID] = m.MemberID
			}
		}
		all = append(all, s)
		return nil
	})
	return all, err
}

// readTopic reads a topic from its start to its end as it is now.
func readTopic(ctx context.Context, addr, topic string, isolation kgo.IsolationLevel, each func(*kgo.Record) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.FetchIsolationLevel(isolation), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	if err := ends.Error(); err != nil {
		return err
	}
	left := map[int32]int64{}
	from := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition], from[o.Partition] = o.Offset, kgo.NewOffset().AtStart()
		}
	})
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: from})
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("read %s: %w", topic, err)
		}
		for _, r := range fetches.Records() {
			if r.Offset >= left[r.Partition]-1 {
				delete(left, r.Partition)
			}
			if r.Attrs.IsControl() {
				continue
			}
			if err := each(r); err != nil {
				return err
			}
		}
	}
	return nil
}
