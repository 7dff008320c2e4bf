package coordinator

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Profile selects how the coordinator answers where Kafka and the promise of KIP-345 part.
type Profile uint8

const (
	// Kafka answers as Apache Kafka 4.4 does, the places where that breaks KIP-345's promise included, so that what
	// passes against it also passes in production.
	Kafka Profile = iota
	// KIP345 keeps the promise: see [Differences] for each place where it answers otherwise.
	KIP345
)

// String returns the name that [ParseProfile] reads.
func (p Profile) String() string {
	if p == KIP345 {
		return "kip345"
	}
	return "kafka"
}

// ParseProfile reads "kafka" or "kip345".
func ParseProfile(s string) (Profile, error) {
	for _, p := range []Profile{Kafka, KIP345} {
		if s == p.String() {
			return p, nil
		}
	}
	return Kafka, fmt.Errorf("coordinator profile %q: want kafka or kip345", s)
}

// A rule is one named place where the profiles differ. Code asks for it by name (m.holds(replacementIsNotGrowth)) and
// is otherwise the same for both profiles.
type rule uint8

const (
	replacementIsNotGrowth rule = iota
	syncTimerSparesStatics
	replacementMovesPendingSync
	replacementSessionAtOnce
	replacementRefreshesClient
	pendingLeaveIsSilent
	pendingWithInstanceIsUnknown
	syncWhileLoadingRebalances
	syncRestartsSession
	staticRemovalIsStored
	everyReplacementIsStored
	initialRebalanceRunsFull
	supportIgnoresReplaced
	instanceIDsAreChecked
	leaveAnswersParkedSync
	repeatedRequestIsAnswered
	describeOnlyStableAssignments
	emptyGroupIDIsRefused
	rules // number of rules
)

// Difference is one row of the table of differences between the profiles.
type Difference struct {
	Name   string // D-number and topic
	Kafka  string // what Apache Kafka does
	KIP345 string // what the KIP345 profile does
	Script string // the scenario in testdata that shows it, both expectations side by side
}

var differences = [rules]Difference{
	replacementIsNotGrowth: {"D1 restart in a full group",
		"refused with GROUP_MAX_SIZE_REACHED: the restarting static member counts as a new one",
		"accepted: a replacement never counts as growth", "D1"},
	syncTimerSparesStatics: {"D2 static member missing at the sync timer",
		"removed one rebalance timeout after the rebalance, whatever its session says",
		"kept until its session ends; a rebalance follows only if a dynamic member was removed or the leader is missing", "D2"},
	replacementMovesPendingSync: {"D3 replacement of a member that owes a Sync",
		"the old id stays in the pending set: a needless rebalance when the sync timer fires",
		"the debt moves to the new id", "D3"},
	replacementSessionAtOnce: {"D4 session timeout of a replacement",
		"the first session runs with the old timeout",
		"the new timeout holds at once", "D4"},
	replacementRefreshesClient: {"D5 client id and host of a replacement",
		"those of the replaced incarnation stay (KAFKA-15704)",
		"refreshed", "S31"},
	pendingLeaveIsSilent: {"D6 a pending member id leaves a Stable or Completing group",
		"starts a rebalance",
		"has no effect on the group", "D6"},
	pendingWithInstanceIsUnknown: {"D7 pending member id with an instance id",
		"UNKNOWN_SERVER_ERROR",
		"UNKNOWN_MEMBER_ID", "D7"},
	syncWhileLoadingRebalances: {"D9 Sync while the group is loading",
		"COORDINATOR_LOAD_IN_PROGRESS, which clients do not expect",
		"REBALANCE_IN_PROGRESS", "S121"},
	syncRestartsSession: {"D9 Sync in a Stable group",
		"does not restart the session",
		"restarts the session", "D9"},
	staticRemovalIsStored: {"D10a removal of a static member while others remain",
		"not stored until the next generation: after a failover the member is back as a ghost",
		"stored at once; the answer to a leave waits for it", "D10a"},
	everyReplacementIsStored: {"D10b replacement during a rebalance",
		"its new member id is not stored: after a failover the rightful holder is fenced (KAFKA-10284)",
		"the new member id is stored before it is handed out", "D10b"},
	initialRebalanceRunsFull: {"D11 expiry in the initial rebalance",
		"the expiry of a pending id or of a member can end the initial delay early",
		"the initial delay always runs to its end", "D11"},
	supportIgnoresReplaced: {"D15 protocols of a replacement",
		"must be supported by the replaced incarnation too: a sole member cannot change its assignor",
		"only the other members count", "S13"},
	instanceIDsAreChecked: {"D16 malformed instance id",
		"accepted by the broker",
		"INVALID_REQUEST: empty, longer than 249, . or .. or a character outside [A-Za-z0-9._-]", "S15"},
	leaveAnswersParkedSync: {"D17 parked Sync of a member that is removed by a leave",
		"never answered",
		"UNKNOWN_MEMBER_ID", "S86"},
	repeatedRequestIsAnswered: {"parked Join or Sync that its member repeats",
		"the older one is never answered",
		"the older one is answered REBALANCE_IN_PROGRESS", "resent"},
	describeOnlyStableAssignments: {"assignments in DescribeGroups outside Stable",
		"those of the last Stable generation",
		"none", "describe-rebalancing"},
	emptyGroupIDIsRefused: {"empty group id in OffsetCommit",
		"accepted for old clients",
		"INVALID_GROUP_ID, as for the other requests", "S11"},
}

// Differences returns the table of everything in which the profiles differ, for documentation. D8, D12 and the
// answer to a failed replacement are not in it: there both profiles do the same, one of Kafka's possible outcomes.
// D13 and D14 are options of [Config].
func Differences() []Difference { return append([]Difference(nil), differences[:]...) }

// holds reports whether a KIP345 rule is in force.
func (m *Machine) holds(rule) bool { return m.cfg.Profile == KIP345 }

// MinVersion is the lowest version of a request that a profile serves. Kafka 4 has dropped the two that came before its
// own offsets topic (KIP-896); KIP345 serves old clients too.
func MinVersion(p Profile, key int16) int16 {
	if p == Kafka {
		switch kmsg.Key(key) {
		case kmsg.OffsetCommit:
			return 2
		case kmsg.OffsetFetch:
			return 1
		}
	}
	return 0
}
