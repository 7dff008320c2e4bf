package membership

import (
	"fmt"

	"github.com/millrace-io/millrace/internal/taskid"
)

// An Event tells the stream thread what has become of its tasks. The thread must handle events in order.
type Event interface {
	fmt.Stringer
	event()
}

// Assigned is the member's complete assignment from now on, tasks that it already had included.
type Assigned struct {
	Generation int32
	Active     []taskid.ID
	Standby    []taskid.ID
}

// Revoked lists tasks that the thread must commit and close; it then reports that it has. The others go on.
type Revoked struct {
	Tasks []taskid.ID

	id uint64 // tells one revocation from the next, so that a late report cannot be taken for another
}

// Lost says that the whole assignment is void: others may have the tasks already. The thread closes them without a
// commit. The member joins again by itself.
type Lost struct{ Reason string }

// Fatal says that the member is gone for good.
type Fatal struct{ Err error }

func (Assigned) event() {}
func (Revoked) event()  {}
func (Lost) event()     {}
func (Fatal) event()    {}

func (e Assigned) String() string {
	s := fmt.Sprintf("assigned generation=%d active=%v", e.Generation, e.Active)
	if len(e.Standby) > 0 {
		s += fmt.Sprintf(" standby=%v", e.Standby)
	}
	return s
}
func (e Revoked) String() string { return fmt.Sprintf("revoked %v", e.Tasks) }
func (e Lost) String() string    { return "lost: " + e.Reason }
func (e Fatal) String() string   { return "fatal: " + e.Err.Error() }

// Done is the input by which the owner of the machine reports that the thread has released the tasks.
func (e Revoked) Done() RevokeDone { return RevokeDone{id: e.id} }

// CommitToken identifies the member to the coordinator in a commit. The generation alone identifies nothing.
type CommitToken struct {
	Group      string
	MemberID   string
	InstanceID string // "" for a dynamic member
	Generation int32
}
