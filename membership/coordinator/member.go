package coordinator

import (
	"bytes"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// member is one member of a group. A static member keeps its record when it is replaced: only the id changes.
type member struct {
	id         string
	instanceID *string // nil: dynamic
	clientID   string
	clientHost string

	sessionTimeout   time.Duration
	rebalanceTimeout time.Duration
	protocols        []kmsg.JoinGroupRequestProtocol // in the member's order of preference
	assignment       []byte

	join parked // its JoinGroup that waits for the rebalance to complete
	sync parked // its SyncGroup that waits for the leader's assignment

	session      timer
	lastContact  instant
	isNew        bool // until its first join completes
	spare        bool // it gets no work in this generation
	offline      bool // its session has ended, and the group keeps it
	offlineSince instant
	owesSync     bool // it did not sync since the last join completed

	swaps   uint64   // replacements so far; names the newest one
	storing int      // replacements whose record is not acknowledged yet
	stored  identity // what to go back to if that fails
}

// parked is a request that is answered later.
type parked struct {
	id      uint64
	version int16
	waiting bool
}

// identity is the part of a static member that a replacement changes.
type identity struct {
	id                   string
	clientID, clientHost string
	sessionTimeout       time.Duration
	rebalanceTimeout     time.Duration
	protocols            []kmsg.JoinGroupRequestProtocol
}

func (mb *member) static() bool { return mb.instanceID != nil }

func (mb *member) identity() identity {
	return identity{mb.id, mb.clientID, mb.clientHost, mb.sessionTimeout, mb.rebalanceTimeout, mb.protocols}
}

// offers reports whether the join offers what the member already offers, in the same order: then it is no change.
func (mb *member) offers(protocols []kmsg.JoinGroupRequestProtocol) bool {
	if len(protocols) != len(mb.protocols) {
		return false
	}
	for i, p := range protocols {
		if p.Name != mb.protocols[i].Name || !bytes.Equal(p.Metadata, mb.protocols[i].Metadata) {
			return false
		}
	}
	return true
}

// metadata is what the member says under a protocol, or nil.
func (mb *member) metadata(protocol string) []byte {
	for _, p := range mb.protocols {
		if p.Name == protocol {
			return p.Metadata
		}
	}
	return nil
}

// vote names the member's favourite among the protocols that everybody supports.
func (mb *member) vote(g *group) string {
	for _, p := range mb.protocols {
		if g.supporters[p.Name] == len(g.members) {
			return p.Name
		}
	}
	return ""
}
