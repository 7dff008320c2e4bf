package admin

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace-io/millrace/membership/coordinator"
)

// Duration is written as text, "15m"; a number is refused, since nobody could tell its unit.
type Duration time.Duration

// MarshalJSON writes it as time.Duration prints it.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads what time.ParseDuration reads.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf("a duration is written as text, for example \"15m\"")
	}
	parsed, err := time.ParseDuration(text)
	*d = Duration(parsed)
	return err
}

// Settings is the JSON form of [coordinator.Settings], which explains the fields.
type Settings struct {
	RegistrationTimeout Duration `json:"registration_timeout"`
	ExpansionTimeout    Duration `json:"expansion_timeout"`
	Expected            []string `json:"expected_instance_ids"`
	RefuseUnexpected    bool     `json:"refuse_unexpected"`
	TargetSize          int      `json:"target_size"`
	SpareSession        Duration `json:"spare_session"`
}

func settingsOf(s coordinator.Settings) Settings {
	return Settings{Duration(s.RegistrationTimeout), Duration(s.ExpansionTimeout), orEmpty(s.Expected), s.RefuseUnexpected, s.TargetSize, Duration(s.SpareSession)}
}

func (s Settings) coordinator() coordinator.Settings {
	return coordinator.Settings{
		RegistrationTimeout: time.Duration(s.RegistrationTimeout),
		ExpansionTimeout:    time.Duration(s.ExpansionTimeout),
		Expected:            s.Expected,
		RefuseUnexpected:    s.RefuseUnexpected,
		TargetSize:          s.TargetSize,
		SpareSession:        time.Duration(s.SpareSession),
	}
}

// orEmpty makes [] of nil: a list that a reader of JSON need not check for null.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// Expected is the body of expected-instances.
type Expected struct {
	InstanceIDs []string `json:"instance_ids"` // none: nobody is expected in particular
	// RefuseOthers refuses new static members that are not on the list.
	RefuseOthers bool `json:"refuse_others"`
	// RemoveNow lets members that are no longer on the list leave at once, in one rebalance, instead of when all of them
	// are offline.
	RemoveNow bool `json:"remove_now"`
}

// Force is the body of force-rebalance.
type Force struct {
	Deadline Duration `json:"deadline"` // for the members to rejoin; 0: their rebalance timeout
}

// Change is the answer to force-rebalance.
type Change struct {
	Before  int32    `json:"generation_before"`
	After   int32    `json:"generation_after"`
	Removed []string `json:"removed"` // instance ids that did not rejoin
	Kept    []string `json:"kept"`
}

// Group is the picture of a group.
type Group struct {
	Group        string   `json:"group"`
	State        string   `json:"state"`
	Generation   int32    `json:"generation"`
	ProtocolType string   `json:"protocol_type"`
	Protocol     string   `json:"protocol"`
	Leader       string   `json:"leader"`
	Members      []Member `json:"members"`
	Newcomers    []string `json:"newcomers"` // instance ids of new static members that wait for a rebalance
	Pending      []string `json:"pending"`   // member ids that were handed out and did not come back yet
	Settings     Settings `json:"settings"`
}

// Member is one member of a group.
type Member struct {
	MemberID         string   `json:"member_id"`
	InstanceID       *string  `json:"instance_id"` // null: dynamic
	ClientID         string   `json:"client_id"`
	Host             string   `json:"host"`
	SessionTimeout   Duration `json:"session_timeout"`
	RebalanceTimeout Duration `json:"rebalance_timeout"`
	Protocols        []string `json:"protocols"`
	Assignment       []byte   `json:"assignment"` // base64
	// State is what the member is doing: joining and syncing wait for the rebalance; offline is kept although its session
	// has ended; spare gets no work; active is everything else.
	State string `json:"state"`
}

func groupOf(g coordinator.Group) Group {
	out := Group{
		Group: g.ID, State: g.State, Generation: g.Generation, ProtocolType: g.ProtocolType, Protocol: g.Protocol, Leader: g.Leader,
		Members: []Member{}, Newcomers: orEmpty(g.Newcomers), Pending: orEmpty(g.Pending), Settings: settingsOf(g.Settings),
	}
	for _, m := range g.Members {
		out.Members = append(out.Members, Member{
			MemberID: m.ID, InstanceID: m.InstanceID, ClientID: m.ClientID, Host: m.Host,
			SessionTimeout: Duration(m.SessionTimeout), RebalanceTimeout: Duration(m.RebalanceTimeout),
			Protocols: m.Protocols, Assignment: m.Assignment, State: stateOf(m),
		})
	}
	return out
}

func stateOf(m coordinator.GroupMember) string {
	switch {
	case m.Joining:
		return "joining"
	case m.Syncing:
		return "syncing"
	case m.Offline:
		return "offline"
	case m.Spare:
		return "spare"
	}
	return "active"
}

// Summary is one row of the list of groups.
type Summary struct {
	Group      string `json:"group"`
	State      string `json:"state"`
	Generation int32  `json:"generation"`
	Members    int    `json:"members"`
}

// Groups is the answer to the list of groups.
type Groups struct {
	Groups []Summary `json:"groups"`
}

// Error is the JSON form of an error. Code and Name are Kafka's, if the coordinator refused.
type Error struct {
	Text string `json:"error"`
	Code int16  `json:"code,omitempty"`
	Name string `json:"name,omitempty"`
}

func (e *Error) Error() string { return e.Text }
