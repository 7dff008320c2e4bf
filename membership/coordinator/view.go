package coordinator

import (
	"maps"
	"slices"
	"time"
)

// Group is a picture of one group for operators and tests: what DescribeGroups tells and what it leaves out.
type Group struct {
	ID           string
	Partition    int32 // of __consumer_offsets
	State        string
	Generation   int32
	ProtocolType string
	Protocol     string // selected for this generation; "" if none
	Leader       string // member id; "" if none
	Members      []GroupMember
	Newcomers    []string // instance ids of new static members that wait for a rebalance, in the order in which they came
	Settings     Settings
	Pending      []string // member ids that were handed out and did not come back yet, sorted
}

// GroupMember is one member of a [Group].
type GroupMember struct {
	ID               string
	InstanceID       *string // nil: dynamic
	ClientID         string
	Host             string
	SessionTimeout   time.Duration
	RebalanceTimeout time.Duration
	Protocols        []string // what it offers, in its order of preference
	Assignment       []byte
	Joining          bool // its JoinGroup is parked
	Syncing          bool // its SyncGroup is parked
	Offline          bool // its session has ended, and the group's settings keep it
	Spare            bool // it gets no work: see [Settings.TargetSize]
}

// Groups returns the ids of all groups that exist, sorted.
func (m *Machine) Groups() []string {
	var ids []string
	for _, g := range m.sortedGroups() {
		if g.state != dead {
			ids = append(ids, g.id)
		}
	}
	return ids
}

// Group returns the picture of a group, with the members in the order in which they joined.
func (m *Machine) Group(id string) (Group, bool) {
	g := m.groups[id]
	if g == nil {
		return Group{}, false
	}
	v := Group{
		ID:           g.id,
		Partition:    g.partition,
		State:        g.state.String(),
		Generation:   g.generation,
		ProtocolType: g.protocolType,
		Protocol:     g.protocol,
		Leader:       g.leader,
		Settings:     g.settings.Settings,
		Pending:      slices.Sorted(maps.Keys(g.pending)),
	}
	for _, n := range g.newcomers {
		v.Newcomers = append(v.Newcomers, *n.instanceID)
	}
	for _, mb := range g.members {
		e := GroupMember{
			ID:               mb.id,
			InstanceID:       mb.instanceID,
			ClientID:         mb.clientID,
			Host:             mb.clientHost,
			SessionTimeout:   mb.sessionTimeout,
			RebalanceTimeout: mb.rebalanceTimeout,
			Assignment:       mb.assignment,
			Joining:          mb.join.waiting,
			Syncing:          mb.sync.waiting,
			Offline:          mb.offline,
			Spare:            mb.spare,
		}
		for _, p := range mb.protocols {
			e.Protocols = append(e.Protocols, p.Name)
		}
		v.Members = append(v.Members, e)
	}
	return v, true
}
