package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// model is what a task's stores should hold: plain maps.
type model struct {
	kv       map[string]row
	windows  map[windowKey]row
	observed int64

	kvOffset, windowOffset int64 // of the two changelogs
}

type row struct {
	value string
	ts    int64
}

type windowKey struct {
	key   string
	start int64
}

func newModel() model {
	return model{kv: map[string]row{}, windows: map[windowKey]row{}, observed: -1}
}

func (m model) clone() model {
	m.kv, m.windows = maps.Clone(m.kv), maps.Clone(m.windows)
	return m
}

func (m model) get(key string) string {
	r, ok := m.kv[key]
	return describe([]byte(r.value), r.ts, ok)
}

func (m model) getWindow(key string, start int64) string {
	r, ok := m.windows[windowKey{key, start}]
	return describe([]byte(r.value), r.ts, ok && start > m.observed-retention)
}

func (m *model) put(key string, value []byte, ts int64) {
	if value == nil {
		delete(m.kv, key)
		return
	}
	m.kv[key] = row{string(value), ts}
}

func (m *model) putWindow(key string, start int64, value []byte, ts int64) {
	m.observed = max(m.observed, start)
	switch {
	case start <= m.observed-retention:
	case value == nil:
		delete(m.windows, windowKey{key, start})
	default:
		m.windows[windowKey{key, start}] = row{string(value), ts}
	}
}

func (m model) ranged(from, to []byte) []string {
	var got []string
	for _, key := range slices.Sorted(maps.Keys(m.kv)) {
		if key >= string(from) && (to == nil || key <= string(to)) {
			got = append(got, fmt.Sprintf("%q=%s", key, m.get(key)))
		}
	}
	return got
}

func (m model) fetched(key string, from, to int64) []string {
	var found []windowKey
	for at := range m.windows {
		if at.key == key && at.start >= from && at.start <= to && at.start > m.observed-retention {
			found = append(found, at)
		}
	}
	slices.SortFunc(found, func(a, b windowKey) int { return cmp.Compare(a.start, b.start) })
	var got []string
	for _, at := range found {
		got = append(got, fmt.Sprintf("%d=%s", at.start, m.getWindow(key, at.start)))
	}
	return got
}
