package coordinator

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestModel lets random clients (up to four static and three dynamic ones) meet restarts, removals, zombies, slow,
// failing and lost appends and restarts of the coordinator, and checks every invariant after every step. A failing
// seed prints a minimal script that can be put into testdata.
//
// MODEL_SEEDS sets the number of seeds, MODEL_SEED runs a single one.
func TestModel(t *testing.T) {
	first, last := uint64(1), uint64(1000)
	if testing.Short() {
		last = 100
	}
	if n, ok := modelNumber(t, "MODEL_SEEDS"); ok {
		last = n
	}
	if n, ok := modelNumber(t, "MODEL_SEED"); ok {
		first, last = n, n
	}
	var next, ran atomic.Uint64
	next.Store(first - 1)
	failed := make(chan struct{})
	var once sync.Once
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := next.Add(1); seed <= last; seed = next.Add(1) {
				select {
				case <-failed:
					return
				default:
				}
				if m := newModel(seed, allSteps()); m.run() != nil {
					once.Do(func() { close(failed) })
					t.Error(minimal(seed))
					return
				}
				ran.Add(1)
			}
		})
	}
	workers.Wait()
	t.Logf("%d seeds", ran.Load())
}

func modelNumber(t *testing.T, name string) (uint64, bool) {
	s := os.Getenv(name)
	if s == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s is not a number", name, s)
	}
	return n, true
}

// modelSteps is how many random steps a seed has before its clients settle.
const modelSteps = 150

func allSteps() []int {
	steps := make([]int, modelSteps)
	for i := range steps {
		steps[i] = i
	}
	return steps
}

// minimal leaves out of a failing seed every step that its failure does not need, and returns the failure with the
// script of what remains. Each step has random numbers of its own, so that leaving one out does not change the others.
func minimal(seed uint64) string {
	steps := allSteps()
	for size := len(steps) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(steps); {
			fewer := slices.Delete(slices.Clone(steps), at, at+size)
			if newModel(seed, fewer).run() != nil {
				steps = fewer
			} else {
				at += size
			}
		}
	}
	m := newModel(seed, steps)
	err := m.run()
	return fmt.Sprintf("seed %d: %v\n\nscenario seed-%d profile=%s\n----\n\n%s", seed, err, seed, m.w.m.cfg.Profile, strings.Join(m.script, "\n"))
}

// model drives clients against a world.
type model struct {
	seed       uint64
	steps      []int
	rnd        *rand.Rand // of the present step
	w          *world
	clients    []*modelClient
	script     []string
	generation int32
	held       bool
	drafts     bool // with what the drafts of KIP-345 asked for
	// excused is set once a fence of the rightful holder may happen: an append failed or was lost, or (D10) Kafka
	// forgot what it does not store.
	excused bool
}

func newModel(seed uint64, steps []int) *model {
	m := &model{seed: seed, steps: steps, w: newWorld(Profile(seed%2), newArgs(nil))}
	m.roll(-1)
	m.drafts = m.rnd.IntN(2) == 0
	for i := range 1 + m.rnd.IntN(4) {
		m.clients = append(m.clients, &modelClient{m: m, name: string(rune('a' + i)), static: true})
	}
	for i := range m.rnd.IntN(4) {
		m.clients = append(m.clients, &modelClient{m: m, name: string(rune('x' + i))})
	}
	return m
}

// roll gives a step its random numbers.
func (m *model) roll(step int) { m.rnd = rand.New(rand.NewPCG(m.seed, uint64(step))) }

func (m *model) run() error {
	for _, step := range m.steps {
		m.roll(step)
		if err := m.random(); err != nil {
			return err
		}
	}
	m.roll(modelSteps)
	return m.settle()
}

// expect ends the script with what does not hold, so that it fails where it is pasted.
func (m *model) expect(format string, v ...any) {
	m.script = append(m.script, "expect "+fmt.Sprintf(format, v...), "----", "ok", "")
}

// do runs one line and checks everything.
func (m *model) do(format string, v ...any) error {
	line := fmt.Sprintf(format, v...)
	m.script = append(m.script, line, "----", "")
	if err := m.w.do(line); err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	m.w.take()
	if err := m.w.check(); err != nil {
		return fmt.Errorf("after %s: %w", line, err)
	}
	now := m.w.generation("g")
	if now < m.generation {
		return fmt.Errorf("after %s: the generation went from %d to %d", line, m.generation, now)
	}
	m.generation = now
	return nil
}

func (m *model) random() error {
	if m.drafts && m.rnd.IntN(25) == 0 {
		return m.configure()
	}
	c := m.clients[m.rnd.IntN(len(m.clients))]
	switch n := m.rnd.IntN(100); {
	case n < 55:
		return c.act()
	case n < 75:
		return m.do("advance %dms", m.rnd.IntN(4000))
	case n < 78:
		return m.do("advance %ds", m.rnd.IntN(40))
	case n < 83:
		return c.restart()
	case n < 86:
		return m.do("leave members=(%s) as=operator", c.identity())
	case n < 89:
		return c.zombie()
	case n < 91:
		return c.commit()
	case n < 96:
		return m.append()
	case n < 98:
		return m.reload()
	}
	return c.stop()
}

// configure changes the group's settings, or forces a rebalance.
func (m *model) configure() error {
	if m.rnd.IntN(3) == 0 {
		return m.do("force deadline=%ds", m.rnd.IntN(40))
	}
	line := "settings"
	if m.rnd.IntN(2) == 0 {
		line += fmt.Sprintf(" registration=%ds", m.rnd.IntN(60))
	}
	if m.rnd.IntN(2) == 0 {
		line += fmt.Sprintf(" expansion=%ds", m.rnd.IntN(60))
	}
	if m.rnd.IntN(2) == 0 {
		line += " expected=(" + strings.Join([]string{"a", "b", "c", "d"}[:1+m.rnd.IntN(4)], ",") + ")"
	}
	if m.rnd.IntN(3) == 0 {
		line += fmt.Sprintf(" target=%d spare-session=%ds", 1+m.rnd.IntN(3), 3+m.rnd.IntN(8))
	}
	if m.rnd.IntN(2) == 0 {
		line += " remove-now"
	}
	return m.do("%s", line)
}

// append holds appends, or lets go of one or of all.
func (m *model) append() error {
	if !m.held {
		m.held = true
		return m.do("hold")
	}
	switch m.rnd.IntN(3) {
	case 0:
		m.held = false
		return m.do("release")
	case 1:
		if len(m.w.held) > 0 {
			return m.do("release append=%d", m.w.held[0].append.ID)
		}
	case 2:
		if len(m.w.held) > 0 {
			m.excused = true
			return m.do("fail append=%d error=REQUEST_TIMED_OUT", m.w.held[0].append.ID)
		}
	}
	return nil
}

// reload restarts the coordinator, with or without a word. Appends that are under way are lost or stored.
func (m *model) reload() error {
	if len(m.w.held) > 0 && m.rnd.IntN(2) == 0 {
		if err := m.do("write"); err != nil {
			return err
		}
	}
	for _, h := range m.w.held {
		m.excused = m.excused || !h.written
	}
	m.excused = m.excused || m.w.cfg.Profile == Kafka
	m.generation = 0
	if m.rnd.IntN(2) == 0 {
		return m.do("reload crash")
	}
	return m.do("reload")
}

// settle gives every client that runs time to do what it should, until the group is Stable with just those members.
func (m *model) settle() error {
	m.held = false
	if err := m.do("release"); err != nil {
		return err
	}
	for range 300 {
		for _, c := range m.clients {
			if c.stopped {
				continue
			}
			if err := c.act(); err != nil {
				return err
			}
		}
		if m.settled() {
			return nil
		}
		if err := m.do("advance 1s"); err != nil {
			return err
		}
	}
	m.expect("state=Stable")
	return fmt.Errorf("after quiet time the group is %+v", m.w.m.groups["g"])
}

func (m *model) settled() bool {
	running := 0
	g := m.w.m.groups["g"]
	for _, c := range m.clients {
		if c.stopped {
			continue
		}
		running++
		if g == nil || !c.member || c.asked != nil || c.gen != g.generation || g.byID[c.id] == nil {
			return false
		}
	}
	return running == 0 || g.state == stable && len(g.members) == running
}
