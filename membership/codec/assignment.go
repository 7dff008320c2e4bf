package codec

import (
	"encoding/binary"

	"github.com/millrace-io/millrace/internal/taskid"
)

// An Assignment is what the leader tells one member. The coordinator stores it and hands the same bytes to a static
// member that comes back, so nothing in it may go stale by mere time.
type Assignment struct {
	// Version is the writer's version. It is set by [DecodeAssignment] and ignored by [Assignment.Encode].
	Version int

	// Generation is the generation for which the leader made the plan.
	Generation int32
	// Active lists the tasks that the member processes from now on, those it already owned included.
	Active []taskid.ID
	// Standby lists the tasks that the member keeps a copy of.
	Standby []taskid.ID
	// Release lists tasks that somebody else waits for: the member must join again once it has released them, also
	// when it came back without remembering that it owned them. Else nobody would get them.
	Release []taskid.ID
	// KnownHash is [Subscription.KnownHash] of what the leader knew of this member, 0 if it could not read it.
	KnownHash uint64
	// Settling says that tasks are being released for others, so that another rebalance follows at once: all members
	// of the generation listen more closely.
	Settling bool
	// InputsHash condenses what there was to assign. A leader that comes back compares it with what there is now.
	InputsHash uint64
}

const (
	asgGeneration = iota + 1
	asgActive
	asgStandby
	asgRelease
	asgKnownHash
	asgInputsHash
	asgSettling
)

// Encode returns the bytes of a. Lists keep their order.
func (a *Assignment) Encode() []byte {
	dst := appendHeader(make([]byte, 0, 128), kindAssignment)
	dst = appendField(dst, asgGeneration, binary.AppendVarint(nil, int64(a.Generation)))
	dst = appendField(dst, asgActive, appendTasks(nil, a.Active))
	dst = appendField(dst, asgStandby, appendTasks(nil, a.Standby))
	dst = appendField(dst, asgRelease, appendTasks(nil, a.Release))
	dst = appendField(dst, asgKnownHash, hashBytes(a.KnownHash))
	dst = appendField(dst, asgInputsHash, hashBytes(a.InputsHash))
	if a.Settling {
		dst = appendField(dst, asgSettling, []byte{1})
	}
	return dst
}

// DecodeAssignment is the inverse of [Assignment.Encode]. No bytes at all are an empty assignment: the coordinator
// gives them to a member that the leader left out. The result does not alias src.
func DecodeAssignment(src []byte) (Assignment, error) {
	a := Assignment{Generation: NoGeneration}
	if len(src) == 0 {
		return a, nil
	}
	version, fields, err := readHeader(src, kindAssignment)
	if err != nil {
		return Assignment{}, err
	}
	a.Version = version
	err = eachField(fields, func(tag uint64, r *reader) {
		switch tag {
		case asgGeneration:
			a.Generation = r.int32()
		case asgActive:
			a.Active = r.tasks()
		case asgStandby:
			a.Standby = r.tasks()
		case asgRelease:
			a.Release = r.tasks()
		case asgKnownHash:
			a.KnownHash = r.fixed64()
		case asgInputsHash:
			a.InputsHash = r.fixed64()
		case asgSettling:
			a.Settling = true
		}
	})
	if err != nil {
		return Assignment{}, err
	}
	return a, nil
}
