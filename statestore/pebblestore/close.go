package pebblestore

import (
	"errors"
	"time"

	"github.com/millrace-io/millrace/statestore"
)

// Close ends open snapshots, waiting a while for queries that are under way, and closes the database without flushing.
// It does not wait for ever: where pebble cannot close, for it still tries to write, Close returns an error and the
// directory stays locked until the process ends.
func (s *Store) Close() error {
	if s.closed {
		return statestore.ErrClosed
	}
	s.closed = true
	timeout := time.NewTimer(s.cfg.CloseTimeout)
	defer timeout.Stop()
	select {
	case <-s.guard.close():
	case <-timeout.C:
		return s.unclosed("a query did not end within " + s.cfg.CloseTimeout.String())
	}
	if fatal := s.health.fatal.Load(); fatal != nil {
		return fatal
	}
	s.gate.closeBegins()
	defer s.gate.closeEnds(s.dir)
	done := make(chan error, 1)
	go func() { done <- s.closeDB() }()
	select {
	case err := <-done:
		return s.closeError(err)
	case <-s.health.died:
		return s.health.fatal.Load()
	case <-timeout.C:
		return s.unclosed("pebble did not close within " + s.cfg.CloseTimeout.String())
	}
}

func (s *Store) closeDB() error {
	var errs []error
	for v := range s.snapshots { // nobody else is inside the guard
		errs = append(errs, s.release(v))
	}
	s.flushes.Wait()
	errs = append(errs, s.db.Close(), s.lock.Close())
	return errors.Join(errs...)
}

// closeError judges what closing returned. After a flush nothing is left to be written, so a full disk, which closing an
// empty log file can meet, does no harm.
func (s *Store) closeError(err error) error {
	switch {
	case err == nil:
		return nil
	case isDiskFull(err) && !s.dirty:
		s.cfg.Logger.Warn("the disk was full when state was closed; everything had been flushed", "dir", s.dir, "err", err)
		return nil
	}
	return s.health.fail("close", err)
}

func (s *Store) unclosed(why string) error {
	return &statestore.StoreError{
		Op: "close", Dir: s.dir, Err: errors.New(why), Hint: "the directory stays locked until the process ends",
	}
}
