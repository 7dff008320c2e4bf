package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Names in the data directory. Those of kfake are the pinned version's; see recovery.go for what is done with them.
const (
	lockName    = "cluster.lock"
	cleanName   = "cluster.clean" // exists while the cluster is down after an orderly stop
	intentsName = "cluster.txns"  // see intents
	fencesName  = "cluster.fence" // producers that a start has to fence
	endName     = "cluster.end"   // in a partition: where its log ended; see notePurge

	kfakeMeta      = "meta.json"
	kfakePids      = "pids.log"
	kfakeGroups    = "groups.log"
	kfakeSequences = "seq_windows.json"
	kfakeSessions  = "session_state.json"
	kfakeSnapshot  = "snapshot.json"
	kfakeParts     = "partitions"
)

var errLocked = errors.New("locked")

// A dataDir is a data directory that this process holds the lock of.
type dataDir struct {
	path      string
	temporary bool
	lock      *os.File
}

// openDataDir creates and locks the directory; "" makes a temporary one.
func openDataDir(path string) (*dataDir, error) {
	d := &dataDir{path: path}
	if path == "" {
		tmp, err := os.MkdirTemp("", "millrace-cluster-")
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		d.path, d.temporary = tmp, true
	}
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return nil, fmt.Errorf("cluster: data directory: %w", err)
	}
	if err := d.checkKind(); err != nil {
		return nil, err
	}
	if err := d.takeLock(); err != nil {
		return nil, err
	}
	return d, nil
}

// checkKind refuses a directory that holds something else, so that a mistyped flag does not mix the two.
func (d *dataDir) checkKind() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("cluster: data directory: %w", err)
	}
	foreign := ""
	for _, e := range entries {
		switch e.Name() {
		case kfakeMeta, lockName:
			return nil
		}
		foreign = e.Name()
	}
	if foreign != "" {
		return fmt.Errorf("cluster: data directory %s holds %s and no %s, so it is not a cluster's: choose an empty or a new directory", d.path, foreign, kfakeMeta)
	}
	return nil
}

func (d *dataDir) takeLock() error {
	f, err := os.OpenFile(d.file(lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("cluster: data directory: %w", err)
	}
	if err := lockFile(f); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 256))
		f.Close()
		if errors.Is(err, errLocked) {
			return fmt.Errorf("cluster: data directory %s is in use by %s: stop that cluster or choose another directory", d.path, describeHolder(holder))
		}
		return fmt.Errorf("cluster: lock %s: %w", f.Name(), err)
	}
	d.lock = f
	return nil
}

func describeHolder(written []byte) string {
	if holder := strings.TrimSpace(string(written)); holder != "" {
		return holder
	}
	return "another process"
}

// sign writes into the lock file who holds it.
func (d *dataDir) sign(addr string) error {
	if err := d.lock.Truncate(0); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	_, err := d.lock.WriteAt(fmt.Appendf(nil, "process %d, listening on %s\n", os.Getpid(), addr), 0)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

func (d *dataDir) file(name string) string { return filepath.Join(d.path, name) }

// release gives the directory back; a temporary one is removed.
func (d *dataDir) release() error {
	var errs []error
	if d.temporary {
		errs = append(errs, os.RemoveAll(d.path))
	} else {
		errs = append(errs, d.lock.Truncate(0))
	}
	errs = append(errs, d.lock.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// markClean notes that everything was written in order.
func (d *dataDir) markClean() error {
	if err := os.WriteFile(d.file(cleanName), nil, 0o644); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// takeClean reports whether the last stop was orderly, and forgets it: from now on only the next orderly stop counts.
func (d *dataDir) takeClean() (bool, error) {
	err := os.Remove(d.file(cleanName))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, fmt.Errorf("cluster: %w", err)
}

// sequences reads how far each producer has come in the offsets topic: kfake's file, or recovery's. An
// append in a producer's name has to go on from there: from 0, kfake would take it for a repetition and drop it.
func (d *dataDir) sequences() (map[int64]sequence, error) {
	found := map[int64]sequence{}
	raw, err := os.ReadFile(d.file(kfakeSequences))
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	var file storedWindows
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("cluster: %s: %w", d.file(kfakeSequences), err)
	}
	for _, w := range file.Windows {
		if w.Topic == offsetsTopic {
			found[w.PID] = sequence{w.Epoch, w.NextSeq}
		}
	}
	return found, nil
}

func (d *dataDir) exists(name string) bool {
	_, err := os.Stat(d.file(name))
	return err == nil
}

// keep reads files that kfake rewrites while it stops; a missing one is kept as missing.
func (d *dataDir) keep(names ...string) (map[string][]byte, error) {
	kept := map[string][]byte{}
	for _, name := range names {
		content, err := os.ReadFile(d.file(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		kept[name] = content
	}
	return kept, nil
}

// restore puts kept files back and removes what kfake writes only while it stops.
func (d *dataDir) restore(kept map[string][]byte) error {
	var errs []error
	for name, content := range kept {
		if content != nil {
			errs = append(errs, os.WriteFile(d.file(name), content, 0o644))
		} else {
			errs = append(errs, removeIfThere(d.file(name)))
		}
	}
	errs = append(errs, removeIfThere(d.file(kfakeSequences)), removeIfThere(d.file(kfakeSessions)))
	snapshots, err := filepath.Glob(filepath.Join(d.file(kfakeParts), "*", kfakeSnapshot))
	errs = append(errs, err)
	for _, name := range snapshots {
		errs = append(errs, removeIfThere(name))
	}
	return errors.Join(errs...)
}

func removeIfThere(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
