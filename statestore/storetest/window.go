package storetest

import (
	"fmt"
	"testing"

	"github.com/millrace-io/millrace/statestore"
)

func runWindow(t *testing.T, newDisk func(t testing.TB) Disk) {
	t.Run("the windows of one key are apart from those of its neighbours", func(t *testing.T) {
		k := openTask(t, newDisk(t))
		for _, key := range []string{"", "a", "a\x00", "a\x00\x01", "aa", "a\xff"} {
			for start := int64(0); start < 150_000; start += 50_000 { // in three segments
				k.putWindow(key, start, "v"+key)
			}
		}
		for range 2 {
			for _, key := range []string{"", "a", "a\x00", "a\x00\x01", "aa", "a\xff"} {
				expectList(t, fmt.Sprintf("windows of %q", key), k.fetched(key, 0, 1_000_000),
					fmt.Sprintf("0=v%s@1", key), fmt.Sprintf("50000=v%s@50001", key), fmt.Sprintf("100000=v%s@100001", key))
			}
			k.commit()
		}
		expectList(t, "bounds are included", k.fetched("a", 50_000, 100_000), "50000=va@50001", "100000=va@100001")
		expectList(t, "nothing between", k.fetched("a", 50_001, 99_999))
		k.close()
	})
	t.Run("windows expire by stream time", func(t *testing.T) { runExpiry(t, newDisk) })
	t.Run("an abort takes the observed time back", func(t *testing.T) {
		k := openTask(t, newDisk(t))
		k.putWindow("a", 0, "v")
		k.commit()
		k.putWindow("a", retention, "far")
		expect(t, "while it is expired", k.getWindow("a", 0), "absent")
		k.state.Abort()
		expect(t, "observed", fmt.Sprint(k.windows.ObservedTime()), "0")
		expect(t, "after the abort", k.getWindow("a", 0), "v@1")
		expect(t, "the aborted one", k.getWindow("a", retention), "absent")
		k.close()
	})
	t.Run("a negative start is refused", func(t *testing.T) {
		k := openTask(t, newDisk(t))
		if err := k.windows.Put([]byte("a"), -1, []byte("v"), 0); err == nil {
			t.Error("no error")
		}
		expect(t, "get", k.getWindow("a", -1), "absent")
		k.close()
	})
}

func runExpiry(t *testing.T, newDisk func(t testing.TB) Disk) {
	k := openTask(t, newDisk(t))
	k.putWindow("a", 0, "v")
	k.putWindow("a", 1_000, "v")
	k.putWindow("b", 100_000, "v")
	k.commit(statestore.Offset{Store: windowName, Next: 3})

	k.putWindow("a", retention, "v") // observed = retention: a start of 0 is out, 1 would be in
	expect(t, "out by one", k.getWindow("a", 0), "absent")
	expect(t, "in", k.getWindow("a", 1_000), "v@1001")
	k.putWindow("a", 0, "late")
	expect(t, "dropped", fmt.Sprint(k.state.Stats().ExpiredPuts), "1")
	expectList(t, "live", k.fetched("a", 0, 10*retention), "1000=v@1001", "200000=v@200001")

	k.putWindow("a", 2*retention+1_000, "v")
	k.commit()
	k = k.reopen()
	expect(t, "observed after a restart", fmt.Sprint(k.windows.ObservedTime()), fmt.Sprint(2*retention+1_000))
	expectList(t, "a", k.fetched("a", 0, 10*retention), "401000=v@401001")
	expectList(t, "b", k.fetched("b", 0, 10*retention))
	k.putWindow("b", retention+1_000, "late")
	k.putWindow("b", retention+1_001, "in time")
	expect(t, "dropped after a restart", fmt.Sprint(k.state.Stats().ExpiredPuts), "1")
	k.commit()
	k.close()

	// The two dead segments, of 100 s each, are gone from the engine, not only from sight. The oldest of the three rows
	// that are left has expired, too, but shares its segment with one that has not.
	e := k.disk.Open(t)
	rows := 0
	must(t, e.Scan([]byte{0, 1}, []byte{0xff}, func(_, _ []byte) bool { rows++; return true }))
	must(t, e.Close())
	expect(t, "rows on disk", fmt.Sprint(rows), "3")
}
