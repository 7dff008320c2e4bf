package coordinator

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// onHeartbeat serves Heartbeat (versions 0 to 4). It is by far the most frequent request: it allocates nothing, and
// its answers are shared.
func (m *Machine) onHeartbeat(r Request, q *kmsg.HeartbeatRequest) {
	m.reply(r.ID, m.heartbeatAnswer(q.Version, code(m.heartbeat(q))))
}

func (m *Machine) heartbeat(q *kmsg.HeartbeatRequest) *kerr.Error {
	if q.Group == "" {
		return kerr.InvalidGroupID
	}
	g, err := m.lookup(q.Group)
	switch {
	case err == kerr.CoordinatorLoadInProgress:
		return nil // nothing is known against the member, and it must not give up for that
	case err != nil:
		return err
	case g == nil:
		return kerr.UnknownMemberID
	case g.state == dead:
		return kerr.CoordinatorNotAvailable
	}
	mb, err := g.validate(q.MemberID, q.InstanceID)
	switch {
	case err != nil:
		return err
	case q.Generation != g.generation:
		return kerr.IllegalGeneration
	}
	m.heard(mb)
	if g.state == preparingRebalance {
		return kerr.RebalanceInProgress
	}
	return nil
}

// heartbeatAnswer names one of the few answers that there are to heartbeats.
type heartbeatAnswer struct{ version, code int16 }

func (m *Machine) heartbeatAnswer(version, code int16) *kmsg.HeartbeatResponse {
	key := heartbeatAnswer{version, code}
	resp := m.heartbeats[key]
	if resp == nil {
		resp = kmsg.NewPtrHeartbeatResponse()
		resp.Version, resp.ErrorCode = version, code
		m.heartbeats[key] = resp
	}
	return resp
}
