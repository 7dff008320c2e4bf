package pebblestore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/pebblestore"
)

var noDeadline = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// faults is a file system whose operations fail while fail says so.
type faults struct {
	fail atomic.Pointer[func(errorfs.Op) error]
}

func (f *faults) String() string { return "faults" }

func (f *faults) MaybeError(op errorfs.Op) error {
	if fail := f.fail.Load(); fail != nil {
		return (*fail)(op)
	}
	return nil
}

func (f *faults) set(fail func(errorfs.Op) error) {
	if fail == nil {
		f.fail.Store(nil)
		return
	}
	f.fail.Store(&fail)
}

// writesTo fails writes to files with that in their names.
func writesTo(file string, err error) func(errorfs.Op) error {
	return func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.Contains(filepath.Base(op.Path), file) {
			return &vfsError{err, op.Path}
		}
		return nil
	}
}

func writesToTables(err error) func(errorfs.Op) error { return writesTo(".sst", err) }

type vfsError struct {
	err  error
	path string
}

func (e *vfsError) Error() string { return e.path + ": " + e.err.Error() }
func (e *vfsError) Unwrap() error { return e.err }

func openFaulty(t *testing.T, cfg pebblestore.Config) (*pebblestore.Store, *faults) {
	t.Helper()
	f := new(faults)
	cfg.FS = errorfs.Wrap(vfs.NewMem(), f)
	cfg.MemoryBudget = 4 << 20
	cfg.DiskFullWait = time.Millisecond
	shared := pebblestore.NewShared(cfg)
	s, err := shared.Open("task")
	must(t, err)
	return s, f
}

// fill returns a batch of about size bytes that do not compress.
func fill(size int) *statestore.Batch {
	b := new(statestore.Batch)
	rng := rand.NewChaCha8([32]byte{1})
	for b.Size() < size {
		key, value := make([]byte, 16), make([]byte, 4000)
		_, _ = rng.Read(key)
		_, _ = rng.Read(value)
		b.Set(key, value)
	}
	return b
}

func stalled(err error) bool {
	e, ok := errors.AsType[*statestore.StoreError](err)
	return ok && e.Stalled
}

// TestFailingFlushesAreAnErrorAndPass makes flushes fail for another reason than space; pebble goes on trying.
func TestFailingFlushesAreAnErrorAndPass(t *testing.T) {
	s, f := openFaulty(t, pebblestore.Config{})
	must(t, s.Apply(fill(1000)))
	f.set(writesToTables(syscall.EIO))
	err := s.Flush(noDeadline)
	if !stalled(err) || !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "task") {
		t.Fatalf("flush: %v, want a stalled StoreError with EIO that names the directory", err)
	}
	if err := s.Apply(fill(1000)); !stalled(err) {
		t.Errorf("apply while flushes fail: %v, want a stalled StoreError", err)
	}
	f.set(nil)
	if err := eventually(func() error { return s.Flush(noDeadline) }, stalled); err != nil {
		t.Fatalf("flush when the disk works again: %v", err)
	}
	must(t, s.Apply(fill(1000)))
	must(t, s.Flush(noDeadline))
	must(t, s.Close())
}

// smallDisk is a file system that says how much room it has.
type smallDisk struct {
	vfs.FS
	free atomic.Uint64
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free.Load()}, nil
}

// TestDiskFullIsAnErrorAndPasses fills the disk for tables, and for the manifest, which is fatal to pebble unless the
// write waits.
func TestDiskFullIsAnErrorAndPasses(t *testing.T) {
	for _, file := range []string{".sst", "MANIFEST"} {
		t.Run(file, func(t *testing.T) {
			var told atomic.Int64
			f := new(faults)
			disk := &smallDisk{FS: errorfs.Wrap(vfs.NewMem(), f)}
			shared := pebblestore.NewShared(pebblestore.Config{
				FS: disk, DiskFullWait: time.Millisecond, OnDiskFull: func() { told.Add(1) },
				OnFatal: func(err *statestore.StoreError) { t.Errorf("fatal: %v", err) },
			})
			defer shared.Close()
			s, err := shared.Open("task")
			must(t, err)
			must(t, s.Apply(fill(1000)))
			f.set(writesTo(file, syscall.ENOSPC))
			for _, try := range []func() error{
				func() error { return s.Flush(noDeadline) }, func() error { return s.Apply(fill(1000)) },
			} {
				err := try()
				if !stalled(err) || !errors.Is(err, syscall.ENOSPC) {
					t.Fatalf("on a full disk: %v, want a stalled StoreError with ENOSPC", err)
				}
				for _, part := range []string{"task", "make room"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q does not say %q", err, part)
					}
				}
			}
			f.set(nil)
			disk.free.Store(1 << 30)
			if err := eventually(func() error { return s.Flush(noDeadline) }, stalled); err != nil {
				t.Fatalf("flush when there is room again: %v", err)
			}
			must(t, s.Apply(fill(1000)))
			must(t, s.Close())
			if told.Load() == 0 || shared.DiskFulls() == 0 {
				t.Error("the full disk was not told, or not counted")
			}
		})
	}
}

// TestCloseDoesNotWaitForRoom closes while the disk is full and stays so.
func TestCloseDoesNotWaitForRoom(t *testing.T) {
	f := new(faults)
	shared := pebblestore.NewShared(pebblestore.Config{
		FS: &smallDisk{FS: errorfs.Wrap(vfs.NewMem(), f)}, DiskFullWait: time.Millisecond,
	})
	defer shared.Close()
	s, err := shared.Open("task")
	must(t, err)
	must(t, s.Apply(fill(1000)))
	f.set(writesToTables(syscall.ENOSPC))
	if err := s.Flush(noDeadline); !stalled(err) {
		t.Fatalf("flush: %v, want a stalled StoreError", err)
	}
	must(t, s.Close())
}

// eventually tries until the error is another one; pebble needs a moment to find out that the disk has room again.
func eventually(try func() error, again func(error) bool) error {
	err := try()
	for end := time.Now().Add(10 * time.Second); err != nil && again(err) && time.Now().Before(end); {
		err = try()
	}
	return err
}

// TestFullMemtablesDoNotHoldTheWriterForEver fills all memtables while no flush gets on, with neither success nor error,
// so that pebble itself waits without end.
func TestFullMemtablesDoNotHoldTheWriterForEver(t *testing.T) {
	s, f := openFaulty(t, pebblestore.Config{StallTimeout: 50 * time.Millisecond, CloseTimeout: 50 * time.Millisecond})
	release := make(chan struct{})
	hang := func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
			<-release
		}
		return nil
	}
	f.set(hang)
	var err error
	for range 100 {
		if err = s.Apply(fill(400 << 10)); err != nil {
			break
		}
	}
	var hung *statestore.StoreError
	if !errors.As(err, &hung) || hung.Stalled || !strings.Contains(err.Error(), "unknown") {
		t.Fatalf("apply with full memtables: %v, want a StoreError about an unknown outcome", err)
	}
	for what, again := range map[string]error{"apply": s.Apply(fill(10)), "flush": s.Flush(noDeadline)} {
		if !errors.Is(again, err) {
			t.Errorf("%s after that: %v, want the same error", what, again)
		}
	}
	if _, _, err := s.Get(nil, []byte("k")); err != nil {
		t.Errorf("reads after that: %v", err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("close while pebble waits: %v, want an error that the directory stays locked", err)
	}
	close(release)
}

func TestFlushEndsWithItsContext(t *testing.T) {
	s, f := openFaulty(t, pebblestore.Config{})
	must(t, s.Apply(fill(1000)))
	reached, release := make(chan struct{}, 1), make(chan struct{})
	f.set(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
			select {
			case reached <- struct{}{}:
			default:
			}
			<-release
		}
		return nil
	})
	ctx, cancel := context.WithCancel(noDeadline)
	go func() { <-reached; cancel() }()
	if err := s.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("flush: %v, want that it was cancelled", err)
	}
	close(release)
	must(t, s.Flush(noDeadline))
	must(t, s.Close())
}

func TestFatalErrorInPebbleEndsTheStoreNotTheProcess(t *testing.T) {
	told := make(chan *statestore.StoreError, 1)
	s, f := openFaulty(t, pebblestore.Config{OnFatal: func(err *statestore.StoreError) { told <- err }})
	must(t, s.Apply(fill(1000)))
	f.set(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync && strings.HasPrefix(filepath.Base(op.Path), "MANIFEST") {
			return syscall.EIO
		}
		return nil
	})
	err := s.Flush(noDeadline)
	fatal := <-told
	if !errors.Is(err, fatal) || !strings.Contains(err.Error(), "restart") {
		t.Fatalf("flush: %v, want the fatal error %v", err, fatal)
	}
	for what, err := range map[string]error{"apply": s.Apply(fill(10)), "flush": s.Flush(noDeadline), "close": s.Close()} {
		if !errors.Is(err, fatal) {
			t.Errorf("%s after that: %v, want the fatal error", what, err)
		}
	}
}

func TestDamageIsCorruptAndNotFatal(t *testing.T) {
	fs := vfs.NewMem()
	cfg := pebblestore.Config{FS: fs, OnFatal: func(err *statestore.StoreError) { t.Errorf("fatal: %v", err) }}
	shared := pebblestore.NewShared(cfg)
	s, err := shared.Open("task")
	must(t, err)
	b := new(statestore.Batch)
	b.Set([]byte("key"), make([]byte, 5000))
	must(t, s.Apply(b))
	must(t, s.Flush(noDeadline))
	must(t, s.Close())
	shared.Close()

	tables := flipBytes(t, fs, "task", 100)
	if tables == 0 {
		t.Fatal("there is no table to damage")
	}
	shared = pebblestore.NewShared(cfg)
	s, err = shared.Open("task")
	must(t, err)
	_, _, err = s.Get(nil, []byte("key"))
	var damaged *statestore.StoreError
	if !errors.As(err, &damaged) || !damaged.Corrupt {
		t.Fatalf("get of a damaged row: %v, want a corrupt StoreError", err)
	}
	if err := s.Apply(b); !errors.As(err, &damaged) || !damaged.Corrupt {
		t.Errorf("apply to a damaged store: %v, want a corrupt StoreError", err)
	}
	must(t, s.Close())
	shared.Close()
}

// flipBytes damages every table of a database at an offset and returns their number.
func flipBytes(t *testing.T, fs vfs.FS, dir string, at int64) (tables int) {
	t.Helper()
	names, err := fs.List(dir)
	must(t, err)
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		tables++
		file, err := fs.OpenReadWrite(fs.PathJoin(dir, name), vfs.WriteCategoryUnspecified)
		must(t, err)
		_, err = file.WriteAt([]byte("damage"), at)
		must(t, err)
		must(t, file.Close())
	}
	return tables
}

func TestOpenErrorsSayWhatTheyAre(t *testing.T) {
	t.Run("in use", func(t *testing.T) {
		shared := pebblestore.NewShared(pebblestore.Config{})
		defer shared.Close()
		dir := t.TempDir()
		s, err := shared.Open(dir)
		must(t, err)
		_, err = shared.Open(dir)
		var locked *statestore.LockedError
		if !errors.As(err, &locked) || locked.Path != dir {
			t.Errorf("second open: %v, want a LockedError for %s", err, dir)
		}
		must(t, s.Close())
		s, err = shared.Open(dir)
		must(t, err)
		must(t, s.Close())
	})
	t.Run("a table is missing", func(t *testing.T) {
		fs := vfs.NewMem()
		shared := pebblestore.NewShared(pebblestore.Config{FS: fs})
		defer shared.Close()
		s, err := shared.Open("task")
		must(t, err)
		must(t, s.Apply(fill(1000)))
		must(t, s.Flush(noDeadline))
		must(t, s.Close())
		names, err := fs.List("task")
		must(t, err)
		for _, name := range names {
			if strings.HasSuffix(name, ".sst") {
				must(t, fs.Remove(fs.PathJoin("task", name)))
			}
		}
		for range 2 { // the failed open gives the lock free
			_, err = shared.Open("task")
			var damaged *statestore.StoreError
			if !errors.As(err, &damaged) || !damaged.Corrupt {
				t.Errorf("open: %v, want a corrupt StoreError", err)
			}
		}
	})
	t.Run("the disk is full", func(t *testing.T) {
		f := new(faults)
		shared := pebblestore.NewShared(pebblestore.Config{FS: errorfs.Wrap(vfs.NewMem(), f), DiskFullWait: time.Millisecond})
		defer shared.Close()
		f.set(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileWrite {
				return syscall.ENOSPC
			}
			return nil
		})
		_, err := shared.Open("task")
		var full *statestore.StoreError
		if !errors.As(err, &full) || full.Corrupt || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("open: %v, want a StoreError with ENOSPC that is not corrupt", err)
		}
	})
}

func TestFlushIfDueMakesTheLastBatchDurable(t *testing.T) {
	fs := vfs.NewCrashableMem()
	shared := pebblestore.NewShared(pebblestore.Config{FS: fs, FlushInterval: time.Minute})
	s, err := shared.Open("task")
	must(t, err)
	b := new(statestore.Batch)
	b.Set([]byte("key"), []byte("value"))
	must(t, s.Apply(b))
	now := time.Unix(1e9, 0)
	s.FlushIfDue(now)
	s.FlushIfDue(now.Add(40 * time.Second)) // three quarters of the interval at the earliest
	if survives(t, fs) {
		t.Fatal("the batch was flushed before its time")
	}
	s.FlushIfDue(now.Add(80 * time.Second))
	must(t, s.Close()) // waits for the flush that has begun
	if !survives(t, fs) {
		t.Error("the batch is lost in a crash after its flush was due")
	}
	shared.Close()
}

// survives says whether the key would be there after a power failure now.
func survives(t *testing.T, fs *vfs.MemFS) bool {
	t.Helper()
	after := pebblestore.NewShared(pebblestore.Config{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
	defer after.Close()
	s, err := after.Open("task")
	must(t, err)
	_, ok, err := s.Get(nil, []byte("key"))
	must(t, err)
	must(t, s.Close())
	return ok
}

func TestOpenSnapshotsAreCounted(t *testing.T) {
	shared := pebblestore.NewShared(pebblestore.Config{FS: vfs.NewMem()})
	defer shared.Close()
	s, err := shared.Open("task")
	must(t, err)
	first, err := s.Snapshot()
	must(t, err)
	second, err := s.Snapshot()
	must(t, err)
	must(t, first.Close())
	must(t, first.Close())
	if n := s.OpenSnapshots(); n != 1 {
		t.Errorf("%d snapshots are open, want 1", n)
	}
	must(t, s.Close())
	if n := s.OpenSnapshots(); n != 0 {
		t.Errorf("%d snapshots are open after Close, want 0", n)
	}
	must(t, second.Close())
}
