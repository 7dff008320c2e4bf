package cluster

import (
	"context"
	"log/slog"
)

// A point is a place at which a kill of the process must do no harm. Crash tests aim at them: every point is logged at
// debug level, as "point" with the attribute at, before the work goes on.
type point string

const (
	atEndTxn         point = "end-txn"         // how a transaction ends is noted, kfake has not been asked
	atEndedTxn       point = "ended-txn"       // all markers are written, the client has no answer
	atAppend         point = "append"          // records of the coordinator are about to be appended
	atAppended       point = "appended"        // they are in the log, and who waits for that has no answer
	atRecoveryFences point = "recovery-fences" // the ends of the logs are known, nothing is written
	atRecoveryMarker point = "recovery-marker" // a marker that is missing is about to be appended
	atRecoveryIndex  point = "recovery-index"  // it is, and its index entry is not
	atFence          point = "fence"           // producers of cut transactions are about to be fenced
	atLoad           point = "load"            // groups are about to be loaded
)

// points tells where the process is. The zero value tells nobody and costs nothing.
type points struct{ log *slog.Logger }

func newPoints(log *slog.Logger) points {
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return points{}
	}
	return points{log: log}
}

func (p points) reach(at point) {
	if p.log != nil {
		p.log.Debug("point", "at", string(at))
	}
}
