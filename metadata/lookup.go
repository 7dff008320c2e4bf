package metadata

import (
	"fmt"
	"slices"

	"github.com/millrace-io/millrace/internal/murmur2"
	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/internal/topology"
)

// KeyHosts says who has a key of a store. Kafka Streams calls this KeyQueryMetadata.
type KeyHosts struct {
	Task    taskid.ID
	Active  *Instance   // the process that owns the key; nil while nobody does, as in a rebalance
	Standby []*Instance // processes that keep a copy
}

// HostsForKey finds the processes that have a serialised key of a store whose application has the given number of
// partitions. It is Kafka's default partitioner that places keys; a store that is fed through another one cannot be looked
// up by key. An unknown store is an error that names those there are.
func (s Snapshot) HostsForKey(plan *topology.Plan, store string, key []byte, partitions int32) (KeyHosts, error) {
	var stores []string
	for _, sub := range plan.Subtopologies {
		for _, candidate := range sub.Stores {
			if candidate.Name == store {
				return s.hostsOf(taskid.ID{Subtopology: sub.ID, Partition: murmur2.Partition(key, partitions)}), nil
			}
			stores = append(stores, candidate.Name)
		}
	}
	return KeyHosts{}, fmt.Errorf("no store %q in application %s: there are %q", store, plan.AppID, stores)
}

func (s Snapshot) hostsOf(task taskid.ID) KeyHosts {
	hosts := KeyHosts{Task: task}
	for i := range s.Instances {
		in := &s.Instances[i]
		if slices.Contains(in.Active, task) {
			hosts.Active = in
		}
		if slices.Contains(in.Standby, task) {
			hosts.Standby = append(hosts.Standby, in)
		}
	}
	return hosts
}
