package storetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/millrace-io/millrace/statestore"
)

// runReaders lets other goroutines take views while the owner commits, aborts and closes. Each commit gives every key the
// same number, so a view that mixes two commits, or shows an aborted write, has different ones.
func runReaders(t *testing.T, newDisk func(t testing.TB) Disk) {
	const keys, commits, readers = 20, 200, 3
	k := openTask(t, newDisk(t))
	number := func(n uint64) {
		value := binary.BigEndian.AppendUint64(nil, n)
		for i := range keys {
			must(t, k.kv.Put([]byte{byte(i)}, value, int64(n)))
			must(t, k.windows.Put([]byte{byte(i)}, 1_000, value, int64(n)))
		}
	}
	number(0)
	k.commit()

	var running sync.WaitGroup
	started := make(chan struct{}, readers)
	for range readers {
		running.Go(func() {
			last, err := readView(k.state, keys)
			started <- struct{}{}
			for err == nil {
				var n uint64
				if n, err = readView(k.state, keys); err == nil && n < last {
					err = fmt.Errorf("view shows %d after %d", n, last)
				}
				last = n
			}
			if !errors.Is(err, statestore.ErrClosed) {
				t.Error(err)
			}
		})
	}
	for range readers {
		<-started
	}
	for n := uint64(1); n <= commits; n++ {
		number(1 << 40)
		k.state.Abort()
		number(n)
		k.commit()
	}
	k.close()
	running.Wait()
}

// readView takes a view and returns the number that every key has in it.
func readView(s *statestore.State, keys int) (uint64, error) {
	view, err := s.Reader()
	if err != nil {
		return 0, err
	}
	n, err := readNumbers(view, keys)
	return n, errors.Join(err, view.Close())
}

func readNumbers(view *statestore.View, keys int) (uint64, error) {
	value, ts, ok, err := view.GetKV(kvName, []byte{0})
	if err != nil || !ok {
		return 0, errors.Join(err, missing(ok))
	}
	n := binary.BigEndian.Uint64(value)
	seen := 0
	err = view.RangeKV(kvName, nil, nil, func(_, value []byte, at int64) bool {
		seen++
		return binary.BigEndian.Uint64(value) == n && at == ts
	})
	if err != nil || seen != keys {
		return 0, errors.Join(err, fmt.Errorf("%d of %d keys are of one commit", seen, keys))
	}
	value, _, ok, err = view.GetWindow(windowName, []byte{byte(keys - 1)}, 1_000)
	if err != nil || !ok || binary.BigEndian.Uint64(value) != n {
		return 0, errors.Join(err, fmt.Errorf("the window store is of another commit than %d", n))
	}
	seen = 0
	err = view.FetchWindow(windowName, []byte{0}, 0, 1<<40, func(start int64, value []byte, _ int64) bool {
		seen++
		return true
	})
	if err != nil || seen != 1 {
		return 0, errors.Join(err, fmt.Errorf("%d windows, want 1", seen))
	}
	return n, nil
}

func missing(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("key is missing")
}
