package statestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-io/millrace/internal/taskid"
)

// Dir is the state directory of one process of one application:
//
//	<root>/<application id>/
//	    .lock               held while a process runs; tells who holds it
//	    process.json        process id, application id, cluster id
//	    <task id>/          one for each task, the engine's
//	    <task id>.corrupt-… set aside by RenameAside
//
// It is for one process at a time: two of them would fence each other and write the same databases. Its methods are for
// one goroutine, but for TaskDir, which any may call.
type Dir struct {
	path  string
	appID string
	lock  *os.File
}

const (
	lockFile    = ".lock"
	asideSuffix = ".corrupt-"
)

// LockDir creates the state directory of an application under root where it does not exist, and locks it until Unlock
// or the end of the process. Call it before joining the group, so that a second start on the same directory fences
// nobody: that start gets a *[LockedError], which names the path and the holder.
func LockDir(root, appID string) (*Dir, error) {
	if root == "" {
		return nil, errors.New("state directory: the path is empty: configure one that survives restarts")
	}
	if err := checkAppID(appID); err != nil {
		return nil, err
	}
	path := filepath.Join(root, appID)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("state directory %s: %w: create it or make its parent writable", path, err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("state directory %s: %w: make it writable for this process", path, err)
	}
	if err := lockExclusive(lock); err != nil {
		holder := readHolder(lock)
		_ = lock.Close()
		return nil, &LockedError{Path: path, Holder: holder, Err: err}
	}
	d := &Dir{path: path, appID: appID, lock: lock}
	if err := d.writeHolder(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

// checkAppID accepts what Kafka accepts in topic names, for the application id begins those as well.
func checkAppID(appID string) error {
	if appID == "" || appID == "." || appID == ".." || len(appID) > maxStoreName {
		return fmt.Errorf("application id %q cannot name a directory: use 1 to %d of the characters a-z A-Z 0-9 . _ -", appID, maxStoreName)
	}
	for i := range len(appID) {
		if !plainByte(appID[i]) {
			return fmt.Errorf("application id %q contains %q: use the characters a-z A-Z 0-9 . _ - only", appID, appID[i])
		}
	}
	return nil
}

// writeHolder tells in the lock file who holds it. That is for people; the lock itself is the operating system's.
func (d *Dir) writeHolder() error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	holder := fmt.Sprintf("process %d on %s, since %s\n", os.Getpid(), host, time.Now().Format(time.RFC3339))
	err = d.lock.Truncate(0)
	if err == nil {
		_, err = d.lock.WriteAt([]byte(holder), 0)
	}
	if err != nil {
		return fmt.Errorf("state directory %s: write the lock file: %w", d.path, err)
	}
	return nil
}

func readHolder(lock *os.File) string {
	buf := make([]byte, 512)
	n, _ := lock.ReadAt(buf, 0)
	return strings.TrimSpace(string(buf[:n]))
}

// Path is the directory itself.
func (d *Dir) Path() string { return d.path }

// Unlock gives the directory free. Every engine in it must be closed before.
func (d *Dir) Unlock() error { return d.lock.Close() }

// TaskDir is the path of a task's directory, whether it exists or not. Bytes that could mean something to a file system
// are escaped.
func (d *Dir) TaskDir(id taskid.ID) string { return filepath.Join(d.path, escapeName(id.String())) }

// Tasks returns the tasks that have a directory, in order. What else lies there is ignored.
func (d *Dir) Tasks() ([]taskid.ID, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("state directory %s: %w", d.path, err)
	}
	var ids []taskid.ID
	for _, entry := range entries { // sorted by name
		name, ok := unescapeName(entry.Name())
		if !ok || !entry.IsDir() {
			continue
		}
		if id, err := taskid.Parse(name); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

// escapeName makes a file name: bytes other than letters, digits, '.', '_', '-' become %XX, and so does a '.' in front,
// which would hide the directory or lead out of it.
func escapeName(name string) string {
	var out strings.Builder
	for i := range len(name) {
		if c := name[i]; plainByte(c) && !(i == 0 && c == '.') {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

// unescapeName is the inverse; ok is false for a name that escapeName does not make.
func unescapeName(file string) (name string, ok bool) {
	var out strings.Builder
	for i := 0; i < len(file); i++ {
		if file[i] != '%' {
			out.WriteByte(file[i])
			continue
		}
		if len(file) < i+3 {
			return "", false
		}
		c, err := strconv.ParseUint(file[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		out.WriteByte(byte(c))
		i += 2
	}
	name = out.String()
	return name, escapeName(name) == file
}

// RenameAside moves a directory out of the way, for state that cannot be used any more but may tell somebody why, and
// returns where it is now: beside its old place, with the time in its name.
func RenameAside(dir string, now time.Time) (string, error) {
	base := dir + asideSuffix + now.UTC().Format("20060102T150405")
	for n := 1; ; n++ {
		aside := base
		if n > 1 {
			aside += "-" + strconv.Itoa(n)
		}
		if _, err := os.Lstat(aside); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("set state aside: %w", err)
		}
		if err := os.Rename(dir, aside); err != nil {
			return "", fmt.Errorf("set state aside: %w", err)
		}
		return aside, nil
	}
}
