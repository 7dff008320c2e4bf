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

	"github.com/cockroachdb/datadriven"
)

// TestModel lets random clients (up to four static and three dynamic ones, old and new) meet restarts, removals, zombies,
// slow, failing and lost appends, transactions and restarts of the coordinator, under random options and settings, and
// checks after every step:
//
//	(1) at most one member holds an instance id              group.check
//	(2) the leader is a member                               group.check
//	(3) every request is answered once                       world.check
//	(4) the generation falls only with a reload              model.do
//	(5) nobody gets another one's assignment                 modelClient.succeeded
//	(6) in Stable all have one generation and one protocol   group.check, model.settled
//	(7) the newest holder of an instance is not fenced,      modelClient.answered
//	    and every older one is                               modelClient.zombie
//	(8) after quiet time the group is Stable                 model.settle
//	(9) and a crash then changes nothing                     model.durable
//
// Under Kafka only what D10 and D17 name may violate (3) and (7), under both profiles (7) after an append that failed or
// was lost. A failing seed prints a minimal script that can be put into testdata.
//
// MODEL_SEEDS sets the number of seeds, MODEL_FROM the first one; MODEL_SEED runs a single one.
func TestModel(t *testing.T) {
	first, last := uint64(1), uint64(1000)
	if testing.Short() {
		last = 100
	}
	if n, ok := modelNumber(t, "MODEL_SEEDS"); ok {
		last = n
	}
	if n, ok := modelNumber(t, "MODEL_FROM"); ok {
		first, last = n, n+last-1
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
	return fmt.Sprintf("seed %d: %v\n\nscenario seed-%d profile=%s%s\n----\n\n%s", seed, err, seed, m.w.m.cfg.Profile, m.options, strings.Join(m.script, "\n"))
}

// model drives clients against a world.
type model struct {
	seed       uint64
	steps      []int
	rnd        *rand.Rand // of the present step
	w          *world
	options    string // of the scenario
	clients    []*modelClient
	script     []string
	generation int32
	held       bool
	drafts     bool // with what the drafts of KIP-345 asked for
	failed     bool // an append failed since the last reload
	reloads    int
}

func newModel(seed uint64, steps []int) *model {
	m := &model{seed: seed, steps: steps}
	m.roll(-1)
	m.drafts = m.rnd.IntN(2) == 0
	for i := range 1 + m.rnd.IntN(4) {
		m.clients = append(m.clients, &modelClient{m: m, name: string(rune('a' + i)), static: true})
	}
	for i := range m.rnd.IntN(4) {
		m.clients = append(m.clients, &modelClient{m: m, name: string(rune('x' + i))})
	}
	for i, c := range m.clients {
		c.producer = i + 1
		c.choose()
	}
	for _, option := range []string{"delay=-1s", "delay=10s", "absent-keep-clock", "absent-after=5s", fmt.Sprintf("max-size=%d", len(m.clients))} {
		if m.rnd.IntN(6) == 0 {
			m.options += " " + option
		}
	}
	_, options, err := datadriven.ParseLine("scenario" + m.options)
	if err != nil {
		panic(err)
	}
	m.w = newWorld(Profile(seed%2), newArgs(options))
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
	m.script = append(m.script, line, "----", "...", "")
	if err := m.w.do(line); err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	m.w.take()
	if err := m.w.check(); err != nil {
		return fmt.Errorf("after %s: %w", line, err)
	}
	now := m.w.generation("g")
	if now < m.generation && m.w.m.groups["g"] != nil {
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
	case n < 85:
		return m.remove()
	case n < 88:
		return c.zombie()
	case n < 91:
		return c.commit()
	case n < 92:
		return c.endTxn()
	case n < 96:
		return m.append()
	case n < 98:
		return m.reload()
	case n < 99:
		return m.do("%s", []string{"fetch stable", "describe", "list", "delete", "offset-delete partitions=(t/0)"}[m.rnd.IntN(5)])
	}
	return c.stop()
}

// remove takes one member or a batch out of the group, as an operator does; some are named by the wrong member id.
func (m *model) remove() error {
	var members []string
	for range 1 + m.rnd.IntN(3) {
		c := m.clients[m.rnd.IntN(len(m.clients))]
		members = append(members, c.identity())
		if c.static && m.rnd.IntN(4) == 0 {
			members = append(members, c.old+":"+c.name)
		}
	}
	return m.do("leave members=(%s) as=operator", strings.Join(members, ","))
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
