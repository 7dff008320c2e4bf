package streams

import (
	"testing"
	"time"

	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/pebblestore"
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

// SetLeaveTimeout lets a test wait less for brokers that are away.
func SetLeaveTimeout(t *testing.T, d time.Duration) {
	before := leaveTimeout
	leaveTimeout = d
	t.Cleanup(func() { leaveTimeout = before })
}

// SetReplacePause lets a test wait less for the replacement of a thread.
func SetReplacePause(t *testing.T, d time.Duration) {
	before := replacePause
	replacePause = d
	t.Cleanup(func() { replacePause = before })
}

// SetEngineWrapper puts a fault in front of every engine that is opened.
func SetEngineWrapper(t *testing.T, wrap func(statestore.Engine) statestore.Engine) {
	before := wrapEngine
	wrapEngine = wrap
	t.Cleanup(func() { wrapEngine = before })
}

// SetStoreTuning changes the configuration of the engines.
func SetStoreTuning(t *testing.T, tune func(pebblestore.Config) pebblestore.Config) {
	before := tuneStores
	tuneStores = tune
	t.Cleanup(func() { tuneStores = before })
}
