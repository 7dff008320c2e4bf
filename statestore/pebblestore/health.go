package pebblestore

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace-io/millrace/statestore"
)

// stallStreak is how many flushes in a row must fail until writes are refused. One failure may pass; several mean that
// the memtables will fill up and pebble will then hold the writer for ever.
const stallStreak = 3

const (
	hintDiskFull = "make room on the disk: writing goes on by itself"
	hintFlush    = "check that the directory exists and its disk works; flushing is retried"
	hintFatal    = "the store cannot be used again in this process: restart it"
	hintCorrupt  = "the local copy is damaged: move it aside, it is restored from the changelogs"
	hintHung     = "the disk does not answer or is full: check it, then open the state again"
)

// health is what pebble's background goroutines tell the owner about the database. They may hold locks of the database
// when they do, so they touch nothing but atomics and channels without waiting.
type health struct {
	dir     string
	log     *slog.Logger
	onFatal func(*statestore.StoreError)

	flushFailures atomic.Int32 // flushes that failed in a row
	flushError    atomic.Pointer[error]
	background    atomic.Int64 // background errors of any kind
	corruption    atomic.Pointer[statestore.StoreError]
	fatal         atomic.Pointer[statestore.StoreError]
	alarm         chan struct{} // has a token when flushes began to fail
	died          chan struct{} // closed at the first fatal error
}

func newHealth(dir string, cfg Config) *health {
	return &health{
		dir: dir, log: cfg.Logger, onFatal: cfg.OnFatal,
		alarm: make(chan struct{}, 1), died: make(chan struct{}),
	}
}

func (h *health) listener() *pebble.EventListener {
	return &pebble.EventListener{
		FlushEnd:        h.flushEnd,
		DataCorruption:  h.dataCorruption,
		BackgroundError: func(error) { h.background.Add(1) },
	}
}

// emptyFlush is the text of pebble's unexported error for a flush that wrote no table because its deletions had nothing
// to delete. It is a success.
const emptyFlush = "pebble: empty table"

func (h *health) flushEnd(info pebble.FlushInfo) {
	if info.Err == nil || info.Err.Error() == emptyFlush {
		h.flushFailures.Store(0)
		return
	}
	h.flushError.Store(&info.Err)
	if h.flushFailures.Add(1) == stallStreak {
		select {
		case h.alarm <- struct{}{}:
		default:
		}
	}
}

func (h *health) dataCorruption(info pebble.DataCorruptionInfo) {
	h.corruption.CompareAndSwap(nil, &statestore.StoreError{
		Op: "read", Dir: h.dir, Corrupt: true, Err: fmt.Errorf("%s: %w", info.Path, info.Details), Hint: hintCorrupt,
	})
}

// check reports why nothing should be written now.
func (h *health) check(op string) error {
	if fatal := h.fatal.Load(); fatal != nil {
		return fatal
	}
	if corrupt := h.corruption.Load(); corrupt != nil {
		return corrupt
	}
	if h.flushFailures.Load() >= stallStreak {
		return h.stalled(op)
	}
	return nil
}

func (h *health) stalled(op string) error {
	cause := *h.flushError.Load()
	hint := hintFlush
	if isDiskFull(cause) {
		hint = hintDiskFull
	}
	return &statestore.StoreError{
		Op: op, Dir: h.dir, Stalled: true, Hint: hint,
		Err: fmt.Errorf("%d flushes in a row failed: %w", h.flushFailures.Load(), cause),
	}
}

// fail wraps an error that pebble returned.
func (h *health) fail(op string, err error) error {
	e := &statestore.StoreError{Op: op, Dir: h.dir, Err: err, Hint: hintFlush}
	switch {
	case pebble.IsCorruptionError(err):
		e.Corrupt, e.Hint = true, hintCorrupt
	case isDiskFull(err):
		e.Hint = hintDiskFull
	}
	return e
}

// Infof, Errorf and Fatalf implement pebble.Logger.

func (h *health) Infof(string, ...any) {}

func (h *health) Errorf(format string, args ...any) {
	h.log.Warn("pebble: "+fmt.Sprintf(format, args...), "dir", h.dir)
}

// Fatalf never returns: where pebble calls it, going on would write a damaged database. The goroutine is parked.
func (h *health) Fatalf(format string, args ...any) {
	fatal := &statestore.StoreError{Op: "write", Dir: h.dir, Err: newFatalError(format, args), Hint: hintFatal}
	if h.fatal.CompareAndSwap(nil, fatal) {
		close(h.died)
		if h.onFatal != nil {
			h.onFatal(fatal)
		}
	}
	select {}
}

// fatalError is the text that pebble gives to Fatalf, and the error among its arguments.
type fatalError struct {
	text  string
	cause error
}

func newFatalError(format string, args []any) *fatalError {
	e := &fatalError{text: "pebble: " + fmt.Sprintf(format, args...)}
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			e.cause = err
		}
	}
	return e
}

func (e *fatalError) Error() string { return e.text }
func (e *fatalError) Unwrap() error { return e.cause }
