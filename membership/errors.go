package membership

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrRebalance says that a commit met a rebalance. The tasks are still the member's: commit again later.
	ErrRebalance = errors.New("a rebalance is in progress, commit again later")
	// ErrLost says that the member's tasks may be somebody else's by now. What has not been committed is void.
	ErrLost = errors.New("the member has lost its tasks to a rebalance, uncommitted work is void")
)

// FencedError says that another process joined with this member's instance id. It is final for the member.
type FencedError struct {
	InstanceID string
	Group      string
	MemberID   string  // the member id that was replaced
	Request    Request // the request that was refused
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("instance id %q in group %q was fenced: the coordinator answered FENCED_INSTANCE_ID to %s of member %q. "+
		"Another process has joined with the same instance id and took its place: a second replica that runs with the same client id, or a newer start of this one. "+
		"This thread stops and does not join again. Give every replica a client id of its own (for example the pod name), and stop one of the two",
		e.InstanceID, e.Group, e.Request, e.MemberID)
}

// UnsupportedError says that the broker is too old for what the member needs.
type UnsupportedError struct {
	Broker  string // host:port
	Request Request
	Need    int // lowest version that does
	Max     int // highest version the broker speaks, -1 if it does not know the request
	Why     string
}

func (e *UnsupportedError) Error() string {
	has := fmt.Sprintf("speaks it up to version %d", e.Max)
	if e.Max < 0 {
		has = "does not know it"
	}
	return fmt.Sprintf("broker %s is too old: %s needs %s version %d and the broker %s. Upgrade the broker (Apache Kafka 2.5 or newer)", e.Broker, e.Why, e.Request, e.Need, has)
}

// SessionTimeoutError says that the coordinator does not allow the session timeout. Min and Max are the broker's
// bounds, 0 if it did not tell.
type SessionTimeoutError struct {
	Group    string
	Timeout  time.Duration
	Min, Max time.Duration
}

func (e *SessionTimeoutError) Error() string {
	bounds := "the broker's group.min.session.timeout.ms and group.max.session.timeout.ms (it did not tell their values)"
	if e.Max > 0 {
		bounds = fmt.Sprintf("%v to %v (the broker's group.min.session.timeout.ms and group.max.session.timeout.ms)", e.Min, e.Max)
	}
	return fmt.Sprintf("session timeout %v is not allowed in group %q: choose one within %s", e.Timeout, e.Group, bounds)
}

// RefusedError says that the coordinator refused the member for good, with what to do about it.
type RefusedError struct {
	Group   string
	Request Request
	Code    Code
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("group %q: the coordinator answered %s with %s: %s", e.Group, e.Request, e.Code, remedy(e.Code))
}

func remedy(c Code) string {
	switch c {
	case InconsistentGroupProtocol:
		return "members of another kind are in the group, for example a plain consumer or another framework: use a group id of its own"
	case InvalidGroupID:
		return "the group id is not valid"
	case GroupAuthorizationFailed:
		return "grant READ on the group to this principal"
	case UnsupportedVersion:
		return "the cluster runs with a metadata version that is too old for static membership: upgrade it"
	case InvalidRequest:
		return "the broker does not accept the request; is the instance id valid?"
	case GroupMaxSizeReached:
		return "the group has group.max.size members: raise it, or run fewer threads"
	default:
		return "the member cannot go on"
	}
}

// AssignmentError says that the member cannot read what the leader assigned to it.
type AssignmentError struct {
	Group string
	Err   error
}

func (e *AssignmentError) Error() string {
	return fmt.Sprintf("group %q: the assignment from the leader: %v", e.Group, e.Err)
}

// Unwrap returns the cause.
func (e *AssignmentError) Unwrap() error { return e.Err }
