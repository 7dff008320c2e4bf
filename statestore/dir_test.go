package statestore_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/statestore"
)

func lockDir(t *testing.T, root, app string) *statestore.Dir {
	t.Helper()
	d, err := statestore.LockDir(root, app)
	must(t, err)
	return d
}

func TestLockDirIsExclusiveInOneProcess(t *testing.T) {
	root := t.TempDir()
	d := lockDir(t, root, "app")
	_, err := statestore.LockDir(root, "app")
	var locked *statestore.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("second lock: %v, want a LockedError", err)
	}
	for _, part := range []string{filepath.Join(root, "app"), fmt.Sprintf("process %d on", os.Getpid())} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	other := lockDir(t, root, "other")
	must(t, other.Unlock())
	must(t, d.Unlock())
	must(t, lockDir(t, root, "app").Unlock())
}

// lockVariable tells the test binary to be the other process of the next test.
const lockVariable = "STATESTORE_TEST_LOCK"

func TestMain(m *testing.M) {
	if root := os.Getenv(lockVariable); root != "" {
		if _, err := statestore.LockDir(root, "app"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the parent goes or kills
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLockDirIsExclusiveAmongProcessesAndFreeAfterAKill(t *testing.T) {
	root := t.TempDir()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), lockVariable+"="+root)
	_, err := other.StdinPipe()
	must(t, err)
	out, err := other.StdoutPipe()
	must(t, err)
	must(t, other.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "locked\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	_, err = statestore.LockDir(root, "app")
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d on", other.Process.Pid)) {
		t.Errorf("lock: %v, want an error that names process %d", err, other.Process.Pid)
	}
	must(t, other.Process.Kill())
	_ = other.Wait() // says that it was killed
	must(t, lockDir(t, root, "app").Unlock())
}

func TestLockDirRefusesNamesThatAreNoNames(t *testing.T) {
	for _, app := range []string{"", ".", "..", "a/b", "../x", "a b", "ä", "a\x00", strings.Repeat("x", 250)} {
		if d, err := statestore.LockDir(t.TempDir(), app); err == nil {
			t.Errorf("application id %q: no error", app)
			must(t, d.Unlock())
		}
	}
	if _, err := statestore.LockDir("", "app"); err == nil {
		t.Error("empty root: no error")
	}
}

func TestProcessIDStays(t *testing.T) {
	root := t.TempDir()
	d := lockDir(t, root, "app")
	first, err := d.ProcessID()
	must(t, err)
	must(t, d.CheckCluster("cluster-1"))
	must(t, d.Unlock())

	d = lockDir(t, root, "app")
	again, err := d.ProcessID()
	must(t, err)
	if first == "" || first != again {
		t.Errorf("process id %q, then %q", first, again)
	}
	must(t, d.CheckCluster("cluster-1"))
	var mismatch *statestore.IdentityError
	if err := d.CheckCluster("cluster-2"); !errors.As(err, &mismatch) || mismatch.What != statestore.ClusterMismatch {
		t.Errorf("another cluster: %v, want a cluster mismatch", err)
	}
	must(t, d.Unlock())
}

func TestProcessFileOfSomethingElseIsAnError(t *testing.T) {
	for name, content := range map[string]string{
		"empty":       "",
		"garbage":     "\x00\x01\x02",
		"no id":       `{"applicationId":"app"}`,
		"id no UUID":  `{"processId":"x","applicationId":"app"}`,
		"another app": `{"processId":"00000000-0000-4000-8000-000000000000","applicationId":"other"}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := lockDir(t, t.TempDir(), "app")
			path := filepath.Join(d.Path(), "process.json")
			must(t, os.WriteFile(path, []byte(content), 0o644))
			if id, err := d.ProcessID(); err == nil {
				t.Errorf("process id %q, want an error", id)
			} else if !strings.Contains(err.Error(), d.Path()) {
				t.Errorf("%q does not say where", err)
			}
			after, err := os.ReadFile(path)
			must(t, err)
			if string(after) != content {
				t.Errorf("the file was changed to %q", after)
			}
			must(t, d.Unlock())
		})
	}
}

func TestTaskDirsKeepToTheDirectory(t *testing.T) {
	d := lockDir(t, t.TempDir(), "app")
	ids := []taskid.ID{
		{Subtopology: "%41", Partition: 0}, {Subtopology: "../../x", Partition: 1}, {Subtopology: ".lock", Partition: 0},
		{Subtopology: "counts", Partition: 0}, {Subtopology: "counts", Partition: 12}, {Subtopology: "ünïcode é/\x00", Partition: 3},
	}
	for _, id := range ids {
		path := d.TaskDir(id)
		if filepath.Dir(path) != d.Path() {
			t.Errorf("task %v has the path %s, outside of %s", id, path, d.Path())
		}
		must(t, os.Mkdir(path, 0o755))
	}
	must(t, os.Mkdir(filepath.Join(d.Path(), "not-a-task"), 0o755))
	must(t, os.WriteFile(filepath.Join(d.Path(), "file_3"), nil, 0o644))
	got, err := d.Tasks()
	must(t, err)
	slices.SortFunc(got, taskid.ID.Compare)
	slices.SortFunc(ids, taskid.ID.Compare)
	if !slices.Equal(got, ids) {
		t.Errorf("tasks %v, want %v", got, ids)
	}
	must(t, d.Unlock())
}

func TestRenameAsideTakesTheTaskAway(t *testing.T) {
	d := lockDir(t, t.TempDir(), "app")
	id, now := taskid.ID{Subtopology: "counts", Partition: 1}, time.Unix(1e9, 0)
	var aside []string
	for range 2 {
		must(t, os.Mkdir(d.TaskDir(id), 0o755))
		to, err := statestore.RenameAside(d.TaskDir(id), now)
		must(t, err)
		aside = append(aside, to)
	}
	if aside[0] == aside[1] {
		t.Errorf("both went to %s", aside[0])
	}
	if got, err := d.Tasks(); err != nil || len(got) != 0 {
		t.Errorf("tasks %v, %v, want none", got, err)
	}
	if _, err := statestore.RenameAside(d.TaskDir(id), now); err == nil {
		t.Error("a directory that does not exist: no error")
	}
	must(t, d.Unlock())
}
