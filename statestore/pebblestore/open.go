package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/millrace-io/millrace/statestore"
)

// formatVersion is pinned, and raised on purpose only: with "the newest" an upgrade of pebble could not be rolled back
// without losing local state.
const formatVersion = pebble.FormatTableFormatV6

const (
	blockSize    = 8 << 10
	bloomBits    = 10
	memTableStop = 4 // so many memtables may wait for their flush
)

// Open opens the database of one task, creating the directory and the database where there is none.
//
// A directory that somebody else has open is a *[statestore.LockedError]. A database that cannot be opened is a
// *[statestore.StoreError] with Corrupt set, unless the operating system refuses for a reason that has nothing to do with
// its content (permissions, a full disk, too many open files).
func (s *Shared) Open(dir string) (*Store, error) {
	if err := s.fs.MkdirAll(dir, 0o755); err != nil {
		return nil, &statestore.StoreError{Op: "open", Dir: dir, Err: err, Hint: "create the directory or make its parent writable"}
	}
	lock, err := pebble.LockDirectory(dir, s.fs)
	if err != nil {
		return nil, &statestore.LockedError{Path: dir, Err: err}
	}
	s.gate.opened(dir)
	h := newHealth(dir, s.cfg)
	db, err := s.openLocked(dir, lock, h)
	if err != nil {
		s.gate.closeBegins()
		s.gate.closeEnds(dir)
		if h.fatal.Load() == nil { // otherwise the parked Open still uses it
			err = errors.Join(err, lock.Close())
		}
		return nil, err
	}
	return &Store{
		db: db, lock: lock, dir: dir, health: h, cfg: s.cfg, gate: s.gate, guard: newGuard(),
		snapshots: map[*snapshot]struct{}{}, interval: jittered(s.cfg.FlushInterval),
	}, nil
}

// openLocked opens the database on a goroutine of its own, for a fatal error in pebble parks it.
func (s *Shared) openLocked(dir string, lock *pebble.Lock, h *health) (*pebble.DB, error) {
	type result struct {
		db  *pebble.DB
		err error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: fmt.Errorf("pebble: panic: %v", p)}
			}
		}()
		db, err := pebble.Open(dir, s.options(lock, h))
		done <- result{db, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, openError(dir, r.err)
		}
		return r.db, nil
	case <-h.died:
		return nil, h.fatal.Load()
	}
}

func (s *Shared) options(lock *pebble.Lock, h *health) *pebble.Options {
	o := &pebble.Options{
		Cache: s.cache, FileCache: s.files, FS: s.fs, Lock: lock,
		DisableWAL: true, FormatMajorVersion: formatVersion,
		MemTableSize: s.cfg.memTableSize(), MemTableStopWritesThreshold: memTableStop,
		CompactionConcurrencyRange: func() (int, int) { return 1, 2 },
		Logger:                     h, EventListener: h.listener(),
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize = blockSize
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(bloomBits)
	}
	return o
}

// notContent are the causes for which opening may fail though nothing is wrong with the database.
var notContent = []error{
	syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE, syscall.EROFS, syscall.ENOMEM, fs.ErrPermission,
}

// openError takes every failure for damage but those of the surroundings: pebble does not mark all damage as such, a
// missing table for instance.
func openError(dir string, err error) error {
	for _, cause := range notContent {
		if errors.Is(err, cause) {
			return &statestore.StoreError{Op: "open", Dir: dir, Err: err, Hint: "the state is not damaged: remove the cause and start again"}
		}
	}
	return &statestore.StoreError{Op: "open", Dir: dir, Err: err, Corrupt: true, Hint: hintCorrupt}
}

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// jittered spreads the flushes of a process's tasks, so that they do not all write at once.
func jittered(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1)
}
