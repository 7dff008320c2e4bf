package pebblestore_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/pebblestore"
	"github.com/millrace-io/millrace/statestore/storetest"
)

func TestConformanceOnFiles(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Disk {
		// A crash of the process, not of the machine: what was written to files stays.
		return newDisk(t, vfs.NewCrashableMem(), 100)
	})
}

func TestConformanceUnderPowerFailures(t *testing.T) {
	for _, unsynced := range []int{0, 50} {
		t.Run("", func(t *testing.T) {
			storetest.Run(t, func(t testing.TB) storetest.Disk { return newDisk(t, vfs.NewCrashableMem(), unsynced) })
		})
	}
}

// memDisk is a file system in memory that can crash; unsynced percent of what was not synced survives that.
type memDisk struct {
	fs       *vfs.MemFS
	unsynced int
	rng      *rand.Rand
	shared   *pebblestore.Shared
}

func newDisk(t testing.TB, fs *vfs.MemFS, unsynced int) *memDisk {
	d := &memDisk{fs: fs, unsynced: unsynced, rng: rand.New(rand.NewPCG(uint64(unsynced), 7))}
	d.shared = pebblestore.NewShared(pebblestore.Config{FS: fs, MemoryBudget: 4 << 20})
	t.Cleanup(d.shared.Close)
	return d
}

func (d *memDisk) Open(t testing.TB) statestore.Engine {
	t.Helper()
	s, err := d.shared.Open("task")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (d *memDisk) Crash(t testing.TB) storetest.Disk {
	return newDisk(t, d.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: d.unsynced, RNG: d.rng}), d.unsynced)
}
