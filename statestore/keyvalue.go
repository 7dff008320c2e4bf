package statestore

// keyValueStore implements [KeyValueStore] over a table whose row keys are the keys themselves.
type keyValueStore struct {
	table
	lo, hi []byte // buffers for the bounds of ranges
}

func (s *keyValueStore) Get(key []byte) ([]byte, int64, bool, error) {
	_, e, err := s.lookup(key, true)
	if err != nil || e.is(flagAbsent) {
		return nil, 0, false, err
	}
	return e.value(), e.timestamp(), true, nil
}

func (s *keyValueStore) Put(key, value []byte, ts int64) error { return s.put(key, value, ts) }

func (s *keyValueStore) Range(from, to []byte, fn func(key, value []byte, ts int64) bool) error {
	lo, hi := keyValueBounds(s.lo[:0], s.hi[:0], s.id, from, to)
	s.lo, s.hi = nil, nil // a range inside fn makes its own
	var damaged error
	err := s.scan(lo, hi, func(key, row []byte) bool {
		value, ts, err := splitRow(s.state.dir, row)
		if err != nil {
			damaged = err
			return false
		}
		return fn(key[storePrefixLen:], value, ts)
	})
	s.lo, s.hi = lo, hi
	if err == nil {
		err = damaged
	}
	return err
}

// keyValueBounds appends the engine range of from <= key <= to; nil bounds are open.
func keyValueBounds(lo, hi []byte, id uint16, from, to []byte) ([]byte, []byte) {
	lo = append(appendStorePrefix(lo, id), from...)
	if to == nil {
		return lo, appendStorePrefix(hi, id+1)
	}
	hi = append(appendStorePrefix(hi, id), to...)
	return lo, append(hi, 0) // the successor of to, which is included
}
