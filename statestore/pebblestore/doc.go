// Package pebblestore is the state engine on disk: one pebble database for each task, with all stores of the task in it
// under prefixes. It is the only package that imports pebble.
//
// # Durability
//
// The write-ahead log is off. A batch goes whole into one memtable, memtables are flushed in order, and each flush is one
// synced edit of the manifest; so after kill -9 or a power failure the database is an exact prefix of the batches applied
// to it. As every batch holds data and changelog offset, that prefix says itself from where to read on. What a crash
// takes back is bounded by time (a flush in the background every [Config.FlushInterval] while there is something to
// flush) and by size (a memtable).
//
// Not relied upon: syncs at a commit, a clean shutdown, [Store.Close] flushing (it does not).
//
// # Failures
//
// pebble waits for ever where it cannot write and ends the process where it finds the database damaged. Neither is for a
// library to do, so:
//
//   - Disk full: all writes of pebble wait until there is room. Meanwhile Apply and Flush answer at once with a
//     [statestore.StoreError] that is Stalled, and so they do while flushes fail for another reason and pebble retries;
//     nothing is lost, and they work again when the cause is gone.
//   - A write that hangs all the same ends with an error after [Config.StallTimeout], and the store takes no more.
//   - A fatal error inside pebble parks the goroutine that hit it, for pebble must not go on: the error is recorded, told
//     to [Config.OnFatal], and everything but reads fails with it. The directory stays locked until the process ends.
//   - Damage: reads that meet it fail with an error that is Corrupt, as does Open when the database cannot be opened. The
//     owner moves the directory aside with [statestore.RenameAside] and restores.
//
// # Memory
//
// A [Shared] has one block cache and one file cache for all databases of the process; memtables are charged to the block
// cache, so [Config.MemoryBudget] bounds both together as long as few tasks write at full speed.
package pebblestore
