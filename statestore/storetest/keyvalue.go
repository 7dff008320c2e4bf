package storetest

import (
	"fmt"
	"testing"

	"github.com/millrace-io/millrace/statestore"
)

func runKeyValue(t *testing.T, newDisk func(t testing.TB) Disk) {
	t.Run("nil deletes and empty does not", func(t *testing.T) {
		k := openTask(t, newDisk(t))
		k.put("a", "1", 1)
		k.put("b", "1", 1)
		k.commit()
		k.put("a", "", 2)
		must(t, k.kv.Put([]byte("b"), nil, 3))
		for _, when := range []string{"uncommitted", "committed", "reopened"} {
			expect(t, when+" a", k.get("a"), "@2")
			expect(t, when+" b", k.get("b"), "absent")
			expectList(t, when+" range", k.ranged(nil, nil), `"a"=@2`)
			if when == "uncommitted" {
				k.commit()
			} else {
				k = k.reopen()
			}
		}
		k.close()
	})
	t.Run("keys of any bytes keep their order", func(t *testing.T) {
		k := openTask(t, newDisk(t))
		keys := []string{"", "\x00", "\x00\x00", "\x00\x01", "\x00\xff", "a", "a\x00", "a\x00\xff", "aa", "\xff", "\xff\x00", "\xff\xff"}
		var want []string
		for i := range keys {
			k.put(keys[len(keys)-1-i], "v", 1)
			if i == len(keys)/2 {
				k.commit()
			}
			want = append(want, fmt.Sprintf("%q=v@1", keys[i]))
		}
		expectList(t, "half committed", k.ranged(nil, nil), want...)
		k.commit()
		expectList(t, "committed", k.ranged(nil, nil), want...)
		expectList(t, "part", k.ranged([]byte("\x00\x01"), []byte("a")), want[3:6]...)
		k.close()
	})
	t.Run("large values", func(t *testing.T) {
		k := openTask(t, newDisk(t))
		large := string(repeated('x', 1<<20))
		isLarge := func(when string) {
			value, _, _, err := k.kv.Get([]byte("a"))
			must(t, err)
			if string(value) != large {
				t.Errorf("%s the value has %d bytes, want the %d written", when, len(value), len(large))
			}
		}
		k.put("a", large, 1)
		k.commit()
		k = k.reopen()
		isLarge("after a restart")
		k.put("a", "small", 2)
		k.put("b", large, 2)
		k.state.Abort()
		isLarge("after an abort")
		expect(t, "b after an abort", k.get("b"), "absent")
		k.close()
	})
	t.Run("a value just read may be written elsewhere", func(t *testing.T) {
		k := openTask(t, newDisk(t))
		for i := range 1000 { // far more than the cache holds
			k.put(fmt.Sprint(i), fmt.Sprint("value ", i), 1)
		}
		k.commit()
		for i := range 1000 {
			value, ts, _, err := k.kv.Get(fmt.Append(nil, i))
			must(t, err)
			must(t, k.kv.Put(fmt.Append(nil, "copy of ", i), value, ts))
		}
		for i := range 1000 {
			expect(t, "copy", k.get(fmt.Sprint("copy of ", i)), fmt.Sprintf("value %d@1", i))
		}
		k.close()
	})
	t.Run("a range lets its function write", func(t *testing.T) { runWritingRange(t, newDisk) })
	t.Run("two stores do not meet", func(t *testing.T) { runTwoStores(t, newDisk) })
}

func runWritingRange(t *testing.T, newDisk func(t testing.TB) Disk) {
	k := openTask(t, newDisk(t))
	for i := range 100 {
		k.put(fmt.Sprintf("%02d", i), "v", 1)
		if i == 50 {
			k.commit()
		}
	}
	n := 0
	err := k.kv.Range(nil, nil, func(key, value []byte, _ int64) bool {
		n++
		must(t, k.kv.Put(key, nil, 2))
		must(t, k.kv.Put(append([]byte("moved "), key...), []byte("w"), 2))
		return k.get("nothing") == "absent"
	})
	must(t, err)
	if n < 100 {
		t.Errorf("range showed %d entries, want at least the 100 that were there", n)
	}
	k.commit()
	got := k.ranged([]byte("moved 00"), []byte("moved 99"))
	expect(t, "moved", fmt.Sprint(len(got)), "100")
	expectList(t, "left", k.ranged(nil, []byte("99")))
	k.close()
}

func runTwoStores(t *testing.T, newDisk func(t testing.TB) Disk) {
	two := []statestore.Spec{{Name: "one", Logged: true}, {Name: "two", Logged: true}}
	disk := newDisk(t)
	s, err := statestore.OpenState(disk.Open(t), two, statestore.StateOptions{CacheBytes: smallCache})
	must(t, err)
	for _, name := range []string{"one", "two"} {
		kv, err := s.KeyValue(name)
		must(t, err)
		must(t, kv.Put([]byte("k"), []byte(name), 1))
		must(t, kv.Put([]byte("\xff\xff"), []byte(name), 1))
	}
	for range 2 {
		for _, name := range []string{"one", "two"} {
			kv, _ := s.KeyValue(name)
			n := 0
			must(t, kv.Range(nil, nil, func(_, value []byte, _ int64) bool {
				n++
				expect(t, "value in "+name, string(value), name)
				return true
			}))
			expect(t, "entries in "+name, fmt.Sprint(n), "2")
		}
		must(t, s.Commit(nil))
	}
	must(t, s.Close(t.Context()))
}
