package streams

import (
	"testing"
	"time"
)

// SetCommitTimeout lets a test wait less for what never comes.
func SetCommitTimeout(t *testing.T, d time.Duration) {
	before := commitTimeout
	commitTimeout = d
	t.Cleanup(func() { commitTimeout = before })
}

// SetLingering lets a test wait less for a thread that does not end.
func SetLingering(t *testing.T, d time.Duration) {
	before := lingering
	lingering = d
	t.Cleanup(func() { lingering = before })
}
