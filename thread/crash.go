package thread

import (
	"context"
	"log/slog"
)

// A Point is a place in the life of a task at which a crash must do no harm. The names are those of the commit protocol
// (commit.go) and of opening a task (open.go). Crash tests aim at them: every point is logged at debug level, as
// "point" with the attributes thread and at, before the thread goes on.
type Point string

// The points.
const (
	AtTxn     Point = "txn"     // the first record of a transaction is about to be produced
	AtC0      Point = "C0"      // a commit begins
	AtC1      Point = "C1"      // the changelog is produced
	AtC2      Point = "C2"      // everything is acknowledged
	AtC4      Point = "C4"      // offsets are sent; in a transaction they are not decided yet
	AtC5      Point = "C5"      // the transaction is committed, local state is not
	AtC6      Point = "C6"      // local state is committed
	AtRestore Point = "restore" // another part of a changelog is about to be applied
	AtFlush   Point = "flush"   // local state is about to be flushed
)

// points tells where the process is. The zero value tells nobody and costs nothing.
type points struct {
	log    *slog.Logger
	thread string
}

func newPoints(log *slog.Logger, thread string) points {
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return points{}
	}
	return points{log: log, thread: thread}
}

func (p points) reach(at Point) {
	if p.log != nil {
		p.log.Debug("point", "thread", p.thread, "at", string(at))
	}
}
