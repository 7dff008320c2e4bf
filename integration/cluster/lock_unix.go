//go:build unix

package cluster

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile takes the lock on an open file, which the system gives back when the process ends, however it ends.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	if err != nil {
		return fmt.Errorf("flock: %w", err)
	}
	return nil
}
