package membership

import "fmt"

// An Action is what the owner of a [Member] must do, in the order given.
type Action interface {
	fmt.Stringer
	action()
}

// SendJoin sends JoinGroup. The request may be parked for the rebalance timeout and longer.
type SendJoin struct {
	Seq      uint64
	MemberID string
	Metadata []byte
	Reason   string
	Again    bool // the same join found no coordinator before
}

// SendSync sends SyncGroup. The request may be parked.
type SendSync struct {
	Seq        uint64
	MemberID   string
	Generation int32
	Grants     []MemberGrant // only from the leader
}

// A MemberGrant is the assignment of one member.
type MemberGrant struct {
	MemberID string
	Bytes    []byte
}

// SendHeartbeat sends Heartbeat, on a connection that no parked request blocks.
type SendHeartbeat struct {
	Seq        uint64
	MemberID   string
	Generation int32
}

// SendLeave sends LeaveGroup. No input follows; the member is dead.
type SendLeave struct{ MemberID string }

// Notify hands an event to the thread.
type Notify struct{ Event Event }

// Log is worth a line in the log of the process.
type Log struct{ Text string }

func (SendJoin) action()      {}
func (SendSync) action()      {}
func (SendHeartbeat) action() {}
func (SendLeave) action()     {}
func (Notify) action()        {}
func (Log) action()           {}

func (a SendJoin) String() string {
	return fmt.Sprintf("send join member=%q reason=%q", a.MemberID, a.Reason)
}
func (a SendSync) String() string {
	return fmt.Sprintf("send sync member=%q generation=%d grants=%d", a.MemberID, a.Generation, len(a.Grants))
}
func (a SendHeartbeat) String() string {
	return fmt.Sprintf("send heartbeat member=%q generation=%d", a.MemberID, a.Generation)
}
func (a SendLeave) String() string { return fmt.Sprintf("send leave member=%q", a.MemberID) }
func (a Notify) String() string    { return "notify " + a.Event.String() }
func (a Log) String() string       { return "log " + a.Text }
