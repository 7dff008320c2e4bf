package kafka

import (
	"fmt"
	"os"
	"path/filepath"
)

// DirEnv names the environment variable that overrides the run directory.
const DirEnv = "MILLRACE_KAFKA_DIR"

// RunDir is the directory that holds everything this package writes: $MILLRACE_KAFKA_DIR if set, else
// .kafka beside the nearest go.mod above the working directory, else below the user's cache directory.
// It is created if need be.
func RunDir() (string, error) {
	dir := os.Getenv(DirEnv)
	if dir == "" {
		var err error
		if dir, err = defaultDir(); err != nil {
			return "", err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("kafka: run directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("kafka: run directory (set %s to choose another): %w", DirEnv, err)
	}
	return dir, nil
}

func defaultDir() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("kafka: run directory: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return filepath.Join(at, ".kafka"), nil
		}
		up := filepath.Dir(at)
		if up == at {
			break
		}
		at = up
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("kafka: no run directory (set %s): %w", DirEnv, err)
	}
	return filepath.Join(cache, "millrace-kafka"), nil
}
