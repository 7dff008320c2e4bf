//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package statestore

import (
	"os"
	"syscall"
)

// lockExclusive takes the file's lock without waiting. It belongs to the open file, so a second open in the same process
// is refused as well, and the operating system gives it free when the process dies.
func lockExclusive(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
