//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package statestore

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// lockExclusive refuses: without a lock two processes could write the same state.
func lockExclusive(*os.File) error {
	return fmt.Errorf("state directories cannot be locked on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
