package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"sync"

	"github.com/millrace-io/millrace/membership/coordinator"
)

// settingsName is the file of the groups' settings in the data directory.
const settingsName = "cluster.groups.json"

// groupSettings are the settings of the groups that have any, and their file.
type groupSettings struct {
	mu     sync.Mutex // held until the coordinator has been told, so that it and the file agree
	dir    *dataDir
	groups map[string]storedSettings
}

// storedSettings are the settings of a group as the file has them. An id that was dismissed, left, and has come back as a new
// member is dismissed again after a restart; it then waits for the others that leave a little longer, and nothing else.
type storedSettings struct {
	coordinator.Settings
	Dismissed []string `json:",omitempty"` // see coordinator.Dismissed
}

// readSettings reads the file; without one no group has settings.
func readSettings(dir *dataDir) (*groupSettings, error) {
	s := &groupSettings{dir: dir, groups: map[string]storedSettings{}}
	raw, err := os.ReadFile(dir.file(settingsName))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if err := json.Unmarshal(raw, &s.groups); err != nil {
		return nil, fmt.Errorf("cluster: %s: %w (remove it to start without group settings)", dir.file(settingsName), err)
	}
	for group, settings := range s.groups {
		if err := settings.Validate(); err != nil {
			return nil, fmt.Errorf("cluster: %s: group %q: %w", dir.file(settingsName), group, err)
		}
	}
	return s, nil
}

// store changes one group's settings in memory and in the file. A file that cannot be written changes nothing.
func (s *groupSettings) store(group string, settings coordinator.Settings) error {
	changed := maps.Clone(s.groups)
	before := s.groups[group]
	changed[group] = storedSettings{settings, coordinator.Dismissed(before.Settings, before.Dismissed, settings)}
	raw, err := json.MarshalIndent(changed, "", "  ")
	if err != nil {
		return fmt.Errorf("cluster: settings of group %q: %w", group, err)
	}
	next := s.dir.file(settingsName + ".next")
	if err := os.WriteFile(next, raw, 0o644); err != nil {
		return fmt.Errorf("cluster: settings of group %q: %w", group, err)
	}
	if err := os.Rename(next, s.dir.file(settingsName)); err != nil { // whole, or not at all
		return fmt.Errorf("cluster: settings of group %q: %w", group, err)
	}
	s.groups = changed
	return nil
}

// tell gives the coordinator what the file said, before it knows any group.
func (s *groupSettings) tell(post func(coordinator.Event)) {
	for group, stored := range s.groups {
		post(coordinator.Configure{Group: group, Settings: stored.Settings, Dismissed: stored.Dismissed})
	}
}
