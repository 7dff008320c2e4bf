package pebblestore

import (
	"log/slog"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace-io/millrace/statestore"
)

// Config tunes a [Shared]. The zero value works.
type Config struct {
	// MemoryBudget bounds block cache and memtables of all tasks together, in bytes. 0 means 32 MiB.
	MemoryBudget int64
	// Tasks is how many tasks the process expects to have; memtables are made smaller when there are many. 0 means 8.
	Tasks int
	// OpenFiles bounds the table files kept open, for all tasks together. 0 means 1024.
	OpenFiles int
	// FlushInterval is how long applied batches may stay in memory alone, give or take a quarter. It bounds what a crash
	// makes the task read again from its changelogs. 0 means 30 s.
	FlushInterval time.Duration
	// StallTimeout is how long a write may take before the store is given up. 0 means 30 s.
	StallTimeout time.Duration
	// CloseTimeout is how long Close waits for queries and for pebble. 0 means 10 s.
	CloseTimeout time.Duration
	// DiskFullWait is how often a full disk is looked at again. 0 means 500 ms.
	DiskFullWait time.Duration
	// FS is where databases live; nil means the operating system's files.
	FS vfs.FS
	// Logger gets warnings; nil means none.
	Logger *slog.Logger
	// OnFatal is called once for each store that met a fatal error in pebble, on the goroutine that met it. It must not
	// call the store. The process should end in an orderly way soon: the store's directory stays locked.
	OnFatal func(*statestore.StoreError)
	// OnDiskFull is called when a write meets a full disk, while all writes wait. It must not call a store.
	OnDiskFull func()
}

const (
	defaultMemoryBudget  = 32 << 20
	defaultTasks         = 8
	defaultOpenFiles     = 1024
	defaultFlushInterval = 30 * time.Second
	defaultStallTimeout  = 30 * time.Second
	defaultCloseTimeout  = 10 * time.Second
	defaultDiskFullWait  = 500 * time.Millisecond

	// Larger memtables cost more than they save: their skip lists miss the processor's caches.
	minMemTable = 1 << 20
	maxMemTable = 16 << 20
)

func (c Config) withDefaults() Config {
	orInt := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	orInt(&c.MemoryBudget, defaultMemoryBudget)
	orDuration(&c.FlushInterval, defaultFlushInterval)
	orDuration(&c.StallTimeout, defaultStallTimeout)
	orDuration(&c.CloseTimeout, defaultCloseTimeout)
	orDuration(&c.DiskFullWait, defaultDiskFullWait)
	if c.Tasks <= 0 {
		c.Tasks = defaultTasks
	}
	if c.OpenFiles <= 0 {
		c.OpenFiles = defaultOpenFiles
	}
	if c.FS == nil {
		c.FS = vfs.Default
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func orDuration(v *time.Duration, d time.Duration) {
	if *v <= 0 {
		*v = d
	}
}

// memTableSize leaves half of the budget to the block cache when every task has two memtables.
func (c Config) memTableSize() uint64 {
	return uint64(min(max(c.MemoryBudget/int64(4*c.Tasks), minMemTable), maxMemTable))
}

// Shared is what the databases of one process have in common. Its methods may be called from any goroutine.
type Shared struct {
	cfg   Config
	cache *pebble.Cache
	files *pebble.FileCache
	gate  *diskGate
	fs    vfs.FS
}

// NewShared makes the caches. Close releases them.
func NewShared(cfg Config) *Shared {
	s := &Shared{cfg: cfg.withDefaults()}
	s.cache = pebble.NewCache(s.cfg.MemoryBudget)
	s.files = pebble.NewFileCache(runtime.GOMAXPROCS(0), s.cfg.OpenFiles)
	s.gate = newDiskGate(s.cfg.FS, s.cfg.DiskFullWait, s.cfg.OnDiskFull)
	s.fs = vfs.OnDiskFull(s.cfg.FS, s.gate.onDiskFull)
	return s
}

// DiskFulls counts the writes that met a full disk.
func (s *Shared) DiskFulls() int64 { return s.gate.fulls.Load() }

// Close releases the caches. Every store must be closed before.
func (s *Shared) Close() {
	s.files.Unref()
	s.cache.Unref()
}
