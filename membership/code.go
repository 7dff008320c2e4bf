package membership

import "strconv"

// A Code is a Kafka error code, as far as group requests answer it.
type Code int16

// The codes that the machine tells apart. Kafka's numbers.
const (
	None                      Code = 0
	CoordinatorLoadInProgress Code = 14
	CoordinatorNotAvailable   Code = 15
	NotCoordinator            Code = 16
	IllegalGeneration         Code = 22
	InconsistentGroupProtocol Code = 23
	InvalidGroupID            Code = 24
	UnknownMemberID           Code = 25
	InvalidSessionTimeout     Code = 26
	RebalanceInProgress       Code = 27
	GroupAuthorizationFailed  Code = 30
	UnsupportedVersion        Code = 35
	MemberIDRequired          Code = 79
	GroupMaxSizeReached       Code = 81
	FencedInstanceID          Code = 82
	InvalidRequest            Code = 42
)

var codeNames = map[Code]string{
	None:                      "NONE",
	CoordinatorLoadInProgress: "COORDINATOR_LOAD_IN_PROGRESS",
	CoordinatorNotAvailable:   "COORDINATOR_NOT_AVAILABLE",
	NotCoordinator:            "NOT_COORDINATOR",
	IllegalGeneration:         "ILLEGAL_GENERATION",
	InconsistentGroupProtocol: "INCONSISTENT_GROUP_PROTOCOL",
	InvalidGroupID:            "INVALID_GROUP_ID",
	UnknownMemberID:           "UNKNOWN_MEMBER_ID",
	InvalidSessionTimeout:     "INVALID_SESSION_TIMEOUT",
	RebalanceInProgress:       "REBALANCE_IN_PROGRESS",
	GroupAuthorizationFailed:  "GROUP_AUTHORIZATION_FAILED",
	UnsupportedVersion:        "UNSUPPORTED_VERSION",
	InvalidRequest:            "INVALID_REQUEST",
	MemberIDRequired:          "MEMBER_ID_REQUIRED",
	GroupMaxSizeReached:       "GROUP_MAX_SIZE_REACHED",
	FencedInstanceID:          "FENCED_INSTANCE_ID",
}

// String returns Kafka's name of the code.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return "error code " + strconv.Itoa(int(c))
}

// moved reports whether the coordinator is elsewhere or not ready: finding it again is the transport's business, the
// machine only sends the request again.
func (c Code) moved() bool {
	return c == CoordinatorLoadInProgress || c == CoordinatorNotAvailable || c == NotCoordinator
}

// A Request names a kind of group request.
type Request string

// The requests of a member.
const (
	JoinGroup       Request = "JoinGroup"
	SyncGroup       Request = "SyncGroup"
	Heartbeat       Request = "Heartbeat"
	LeaveGroup      Request = "LeaveGroup"
	OffsetCommit    Request = "OffsetCommit"
	TxnOffsetCommit Request = "TxnOffsetCommit"
)
