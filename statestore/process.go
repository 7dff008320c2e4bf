package statestore

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

const processFile = "process.json"

// process is what process.json holds.
type process struct {
	ProcessID     string `json:"processId"`
	ApplicationID string `json:"applicationId"`
	ClusterID     string `json:"clusterId,omitempty"`
}

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// ProcessID returns the id of this process, a UUID that is made at the first call and then stays with the directory for
// ever: names of members and where tasks go depend on it. A file that cannot be understood is an error, not a new id.
func (d *Dir) ProcessID() (string, error) {
	p, err := d.readProcess()
	return p.ProcessID, err
}

// CheckCluster checks that the directory belongs to the Kafka cluster of this id, and records it the first time. Another
// one is an *[IdentityError].
func (d *Dir) CheckCluster(clusterID string) error {
	p, err := d.readProcess()
	switch {
	case err != nil:
		return err
	case p.ClusterID == clusterID:
		return nil
	case p.ClusterID != "":
		return &IdentityError{What: ClusterMismatch, Dir: d.path, Have: p.ClusterID, Want: clusterID}
	}
	p.ClusterID = clusterID
	return d.writeProcess(p)
}

// readProcess reads the file, or makes it.
func (d *Dir) readProcess() (process, error) {
	path := filepath.Join(d.path, processFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		p := process{ProcessID: newUUID(), ApplicationID: d.appID}
		return p, d.writeProcess(p)
	}
	if err != nil {
		return process{}, fmt.Errorf("process id: %w", err)
	}
	var p process
	if err := json.Unmarshal(data, &p); err != nil {
		return process{}, garbage(path, err)
	}
	if !uuidForm.MatchString(p.ProcessID) {
		return process{}, garbage(path, fmt.Errorf("processId %.50q is not a UUID", p.ProcessID))
	}
	if p.ApplicationID != d.appID {
		return process{}, &IdentityError{What: ApplicationMismatch, Dir: d.path, Have: p.ApplicationID, Want: d.appID}
	}
	return p, nil
}

func garbage(path string, err error) error {
	return fmt.Errorf("process id: %s is damaged: %w: restore the file, or remove it to get a new process id", path, err)
}

// writeProcess replaces the file as a whole: after a crash there is the old one or the new one.
func (d *Dir) writeProcess(p process) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("process id: %w", err)
	}
	path := filepath.Join(d.path, processFile)
	if err := replaceFile(path, append(data, '\n')); err != nil {
		return fmt.Errorf("process id: write %s: %w", path, err)
	}
	return nil
}

func replaceFile(path string, data []byte) error {
	next, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = next.Write(data)
	if err == nil {
		err = next.Sync()
	}
	if err = errors.Join(err, next.Close()); err != nil {
		return err
	}
	if err := os.Rename(next.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// newUUID returns a random UUID, version 4.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: it ends the process instead
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
