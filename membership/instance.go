package membership

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxNameLength is Kafka's limit for a group.instance.id.
const MaxNameLength = 249

// A NameError says why a client id cannot name the instances of a process.
type NameError struct {
	ClientID   string
	InstanceID string // the id with the thread's suffix
	Problem    string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("client id %q: its instance id %q %s: use 1 to %d of the characters A-Z a-z 0-9 . _ - (the thread's suffix counts)", e.ClientID, e.InstanceID, e.Problem, MaxNameLength)
}

// ConsumerClientID is the Kafka client id of the consumer of a process's thread, Kafka Streams' own form. Threads
// count from 1.
func ConsumerClientID(clientID string, thread int) string {
	return clientID + "-StreamThread-" + strconv.Itoa(thread) + "-consumer"
}

// InstanceID is the group.instance.id of a process's thread: its consumer client id. It fails with a [*NameError] if
// Kafka would not take it, before anything is sent.
func InstanceID(clientID string, thread int) (string, error) {
	id := ConsumerClientID(clientID, thread)
	fail := func(format string, args ...any) (string, error) {
		return "", &NameError{ClientID: clientID, InstanceID: id, Problem: fmt.Sprintf(format, args...)}
	}
	if clientID == "" {
		return fail("has no name before the suffix")
	}
	for i, r := range id {
		if !allowed(r) {
			return fail("has the character %q at byte %d", r, i)
		}
	}
	if len(id) > MaxNameLength {
		return fail("is %d characters long", len(id))
	}
	return id, nil
}

// ThreadOf returns which thread of a process has an instance id; ok is false if it is none of the process.
func ThreadOf(clientID, instanceID string) (thread int, ok bool) {
	rest, _ := strings.CutPrefix(instanceID, clientID+"-StreamThread-")
	digits, _ := strings.CutSuffix(rest, "-consumer")
	thread, err := strconv.Atoi(digits)
	return thread, err == nil && thread > 0 && ConsumerClientID(clientID, thread) == instanceID
}

func allowed(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return true
	default:
		return r == '.' || r == '_' || r == '-'
	}
}

// uuidLength is the length of what a coordinator appends to an instance id to form a member id.
const uuidLength = 36

// incarnationOf reports whether the member id was given to the instance id, now or before a restart. Coordinators form
// it as "<instance id>-<uuid>"; the length is checked because one instance id may begin like another.
func incarnationOf(memberID, instanceID string) bool {
	n := len(instanceID)
	return instanceID != "" && len(memberID) == n+1+uuidLength && memberID[:n] == instanceID && memberID[n] == '-'
}
