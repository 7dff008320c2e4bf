package storetest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-io/millrace/statestore"
)

// run is one random history of a task beside its model.
type run struct {
	*task
	rng       *rand.Rand
	now       model
	committed []model // after each commit, oldest first; the last is what an abort goes back to
	flushed   int     // index of the last commit that is durable for sure
	stream    int64   // where window starts are about now
	steps     []string
}

// runModel runs random histories. A failure prints the seed and the last steps.
func runModel(t *testing.T, newDisk func(t testing.TB) Disk) {
	histories, length := uint64(20), 600
	if testing.Short() {
		histories = 5
	}
	for seed := range histories {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := &run{task: openTask(t, newDisk(t)), rng: rand.New(rand.NewPCG(seed, 1)), now: newModel()}
			r.committed = []model{newModel()}
			defer func() {
				if t.Failed() {
					t.Logf("the last steps: %s", strings.Join(r.steps[max(0, len(r.steps)-30):], "; "))
				}
			}()
			for range length {
				r.step()
				if t.Failed() {
					return
				}
			}
			r.checkAll("at the end")
			r.close()
		})
	}
}

// step does one random thing; the weights make commits rarer than writes, and restarts rarer than commits.
func (r *run) step() {
	switch n := r.rng.IntN(1000); {
	case n < 300:
		r.stepPut()
	case n < 550:
		r.stepPutWindow()
	case n < 700:
		r.stepGet()
	case n < 760:
		r.stepRange()
	case n < 820:
		r.stepFetch()
	case n < 900:
		r.stepCommit()
	case n < 930:
		r.note("abort")
		r.state.Abort()
		r.now = r.last().clone()
	case n < 950:
		r.stepRestore()
	case n < 965:
		r.stepView()
	case n < 975:
		r.note("flush")
		must(r.t, r.state.Flush(r.t.Context()))
		r.flushed = len(r.committed) - 1
	case n < 985:
		r.note("reopen")
		r.task = r.reopen()
		r.now, r.flushed = r.last().clone(), len(r.committed)-1
		r.checkAll("after a restart")
	default:
		r.stepCrash()
	}
}

func (r *run) last() model { return r.committed[len(r.committed)-1] }

func (r *run) note(format string, args ...any) {
	r.steps = append(r.steps, fmt.Sprintf(format, args...))
}

// key returns one of few keys, of which many share prefixes and hold the bytes that encodings care for.
func (r *run) key() string {
	const alphabet = "\x00\x01a\xff"
	key := make([]byte, r.rng.IntN(4))
	for i := range key {
		key[i] = alphabet[r.rng.IntN(len(alphabet))]
	}
	return string(key)
}

func (r *run) value() []byte {
	switch n := r.rng.IntN(10); {
	case n == 0:
		return nil
	case n == 1:
		return []byte{}
	case n == 2:
		return repeated('x', r.rng.IntN(2000))
	default:
		return fmt.Append(nil, r.rng.IntN(1e9))
	}
}

// start returns a window start near the stream time, which advances now and then, sometimes beyond the retention.
func (r *run) start() int64 {
	switch r.rng.IntN(40) {
	case 0:
		r.stream += retention
	case 1, 2, 3, 4:
		r.stream += 10_000
	}
	return max(0, r.stream-windowSize*r.rng.Int64N(1+retention*5/4/windowSize))
}

func (r *run) stepPut() {
	key, value, ts := r.key(), r.value(), r.rng.Int64N(1000)
	r.note("put %q=%.10q@%d", key, value, ts)
	must(r.t, r.kv.Put([]byte(key), value, ts))
	r.now.put(key, value, ts)
}

func (r *run) stepPutWindow() {
	key, start, value, ts := r.key(), r.start(), r.value(), r.rng.Int64N(1000)
	r.note("put %q, %d=%.10q@%d", key, start, value, ts)
	must(r.t, r.windows.Put([]byte(key), start, value, ts))
	r.now.putWindow(key, start, value, ts)
	expect(r.t, "observed time", fmt.Sprint(r.windows.ObservedTime()), fmt.Sprint(r.now.observed))
}

func (r *run) stepGet() {
	key, start := r.key(), r.start()
	expect(r.t, fmt.Sprintf("get %q", key), r.get(key), r.now.get(key))
	expect(r.t, fmt.Sprintf("get %q, %d", key, start), r.getWindow(key, start), r.now.getWindow(key, start))
}

func (r *run) stepRange() {
	var bounds [2][]byte
	for i := range bounds {
		if r.rng.IntN(3) > 0 {
			bounds[i] = []byte(r.key())
		}
	}
	what := fmt.Sprintf("range from %q to %q", bounds[0], bounds[1])
	expectList(r.t, what, r.ranged(bounds[0], bounds[1]), r.now.ranged(bounds[0], bounds[1])...)
}

func (r *run) stepFetch() {
	key, from, to := r.key(), r.start(), r.start()
	if r.rng.IntN(2) == 0 {
		from, to = 0, 1<<60
	}
	what := fmt.Sprintf("fetch %q from %d to %d", key, from, to)
	expectList(r.t, what, r.fetched(key, from, to), r.now.fetched(key, from, to)...)
}

func (r *run) stepCommit() {
	r.note("commit")
	r.now.kvOffset++
	r.now.windowOffset++
	r.checkChangelog()
	r.commit(statestore.Offset{Store: kvName, Next: r.now.kvOffset}, statestore.Offset{Store: windowName, Next: r.now.windowOffset})
	r.committed = append(r.committed, r.now.clone())
}

// checkChangelog replays what the changelog got on top of the last commit: that must give the model, too.
func (r *run) checkChangelog() {
	replayed := r.last().clone()
	err := r.state.Changelog(func(store string, key, value []byte, ts int64) error {
		if store == kvName {
			replayed.put(string(key), value, ts)
			return nil
		}
		user, start := splitChangelogKey(key)
		if at := (windowKey{user, start}); value == nil {
			delete(replayed.windows, at)
		} else {
			replayed.windows[at] = row{string(value), ts}
		}
		return nil
	})
	must(r.t, err)
	if !maps.Equal(replayed.kv, r.now.kv) {
		r.t.Errorf("the changelog gives %v, want %v", replayed.kv, r.now.kv)
	}
	if !maps.Equal(replayed.windows, r.now.windows) {
		r.t.Errorf("the changelog gives %v, want %v", replayed.windows, r.now.windows)
	}
}

// Changelog keys of window stores end in the start, 8 bytes, and a sequence number of 4 that is 0.

func splitChangelogKey(key []byte) (user string, start int64) {
	cut := len(key) - 12
	return string(key[:cut]), int64(binary.BigEndian.Uint64(key[cut:]))
}

func joinChangelogKey(user string, start int64) []byte {
	return append(binary.BigEndian.AppendUint64([]byte(user), uint64(start)), 0, 0, 0, 0)
}

func (r *run) stepRestore() {
	r.note("abort and restore")
	r.state.Abort()
	r.now = r.last().clone()
	var recs []statestore.ChangelogRecord
	for range r.rng.IntN(20) {
		key, value, ts := r.key(), r.value(), r.rng.Int64N(1000)
		recs = append(recs, statestore.ChangelogRecord{Key: []byte(key), Value: value, Timestamp: ts})
		r.now.put(key, value, ts)
	}
	r.now.kvOffset++
	must(r.t, r.state.Restore(kvName, recs, r.now.kvOffset))
	r.committed = append(r.committed, r.now.clone())
	// The other store moves in a batch of its own; a crash may fall between the two.
	recs = nil
	for range r.rng.IntN(20) {
		key, start, value, ts := r.key(), r.start(), r.value(), r.rng.Int64N(1000)
		recs = append(recs, statestore.ChangelogRecord{Key: joinChangelogKey(key, start), Value: value, Timestamp: ts})
		r.now.putWindow(key, start, value, ts)
	}
	r.now.windowOffset++
	must(r.t, r.state.Restore(windowName, recs, r.now.windowOffset))
	r.committed = append(r.committed, r.now.clone())
}

func (r *run) stepView() {
	view, err := r.state.Reader()
	must(r.t, err)
	want := r.last()
	key, start := r.key(), r.start()
	value, ts, ok, err := view.GetKV(kvName, []byte(key))
	must(r.t, err)
	expect(r.t, fmt.Sprintf("view of %q", key), describe(value, ts, ok), want.get(key))
	value, ts, ok, err = view.GetWindow(windowName, []byte(key), start)
	must(r.t, err)
	expect(r.t, fmt.Sprintf("view of %q, %d", key, start), describe(value, ts, ok), want.getWindow(key, start))
	var got []string
	must(r.t, view.FetchWindow(windowName, []byte(key), 0, 1<<60, func(start int64, value []byte, ts int64) bool {
		got = append(got, fmt.Sprintf("%d=%s", start, describe(value, ts, true)))
		return true
	}))
	expectList(r.t, fmt.Sprintf("view of the windows of %q", key), got, want.fetched(key, 0, 1<<60)...)
	must(r.t, view.Close())
}

// stepCrash takes the power away and checks that what is left is one of the commits since the last flush, data and
// offset alike.
func (r *run) stepCrash() {
	r.note("crash")
	r.task = r.crash()
	at := r.findCommit()
	if at < r.flushed {
		r.t.Fatalf("after a crash the state is at commit %d, though %d was flushed", at, r.flushed)
	}
	r.committed = r.committed[:at+1]
	r.now, r.flushed = r.last().clone(), at
	r.checkAll("after a crash")
}

// findCommit returns the index of the commit that the offsets name.
func (r *run) findCommit() int {
	kv, _ := r.state.Offset(kvName)
	windows, _ := r.state.Offset(windowName)
	for i, m := range slices.Backward(r.committed) {
		if m.kvOffset == kv && m.windowOffset == windows {
			return i
		}
	}
	r.t.Fatalf("offsets %d and %d belong to no commit", kv, windows)
	return 0
}

func (r *run) checkAll(when string) {
	expectList(r.t, when+": table", r.ranged(nil, nil), r.now.ranged(nil, nil)...)
	expect(r.t, when+": observed time", fmt.Sprint(r.windows.ObservedTime()), fmt.Sprint(r.now.observed))
	keys := map[string]bool{}
	for at := range r.now.windows {
		keys[at.key] = true
	}
	for key := range keys {
		expectList(r.t, fmt.Sprintf("%s: windows of %q", when, key), r.fetched(key, 0, 1<<60), r.now.fetched(key, 0, 1<<60)...)
	}
}
