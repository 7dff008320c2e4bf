package coordinator

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestModel lets random clients (up to four static and three dynamic ones) meet restarts, removals, zombies, slow,
// failing and lost appends and restarts of the coordinator, and checks every invariant after every step. A failing
// seed prints a script that can be put into testdata.
//
// MODEL_SEEDS sets the number of seeds, MODEL_SEED runs a single one.
func TestModel(t *testing.T) {
	first, last := uint64(1), uint64(1000)
	if testing.Short() {
		last = 100
	}
	if s := os.Getenv("MODEL_SEEDS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("MODEL_SEEDS=%s is not a number", s)
		}
		last = n
	}
	if s := os.Getenv("MODEL_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("MODEL_SEED=%s is not a number", s)
		}
		first, last = n, n
	}
	for seed := first; seed <= last; seed++ {
		profile := Profile(seed % 2)
		m := newModel(seed, profile)
		if err := m.run(); err != nil {
			t.Fatalf("seed %d: %v\nscenario seed-%d profile=%s\n%s", seed, err, seed, profile, strings.Join(m.script, "\n"))
		}
	}
}

// model drives clients against a world.
type model struct {
	rnd        *rand.Rand
	w          *world
	clients    []*modelClient
	script     []string
	generation int32
	held       bool
	// excused is set once a fence of the rightful holder may happen: an append failed or was lost, or (D10) Kafka
	// forgot what it does not store.
	excused bool
}

func newModel(seed uint64, p Profile) *model {
	m := &model{rnd: rand.New(rand.NewPCG(seed, 345)), w: newWorld(p, newArgs(nil))}
	for i := range 1 + m.rnd.IntN(4) {
		m.clients = append(m.clients, &modelClient{m: m, name: string(rune('a' + i)), static: true})
	}
	for i := range m.rnd.IntN(4) {
		m.clients = append(m.clients, &modelClient{m: m, name: string(rune('x' + i))})
	}
	return m
}

func (m *model) run() error {
	for range 150 {
		if err := m.random(); err != nil {
			return err
		}
	}
	return m.settle()
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

// modelClient is a consumer that follows the protocol, as Kafka's own does.
type modelClient struct {
	m       *model
	name    string
	static  bool
	stopped bool
	id      string
	old     string // the id of an earlier incarnation
	run     int    // incarnations so far
	member  bool   // it has an assignment of this generation
	joined  bool   // it has to sync
	leads   []string
	gen     int32
	asked   *sent // its request under way
	askedAt time.Time
}

func (c *modelClient) identity() string {
	if c.static {
		return ":" + c.name
	}
	return c.id
}

func (c *modelClient) who() string {
	s := fmt.Sprintf("as=%s%d member=%s client=%s", c.name, c.run, c.id, c.name)
	if c.static {
		s += " instance=" + c.name
	}
	return s
}

func (c *modelClient) ask(format string, v ...any) error {
	if err := c.m.do(format+" "+c.who(), v...); err != nil {
		return err
	}
	c.asked, c.askedAt = c.m.w.names[fmt.Sprintf("%s%d", c.name, c.run)], c.m.w.now
	return c.hear()
}

// hear takes the answer, if there is one; a request that is lost or takes too long is given up.
func (c *modelClient) hear() error {
	s := c.asked
	switch {
	case s == nil:
		return nil
	case s.answer != nil:
		c.asked = nil
		return c.answered(s)
	case s.lost || c.m.w.now.Sub(c.askedAt) > time.Minute:
		c.asked = nil
		c.member, c.joined = false, false
	}
	return nil
}

// act does what is next: wait, sync, heartbeat or join.
func (c *modelClient) act() error {
	c.stopped = false
	if err := c.hear(); err != nil || c.asked != nil {
		return err
	}
	switch {
	case c.joined:
		var assign []string
		for _, id := range c.leads {
			assign = append(assign, id+":"+id[:strings.LastIndex(id, "-")])
		}
		return c.ask("sync generation=%d assign=(%s)", c.gen, strings.Join(assign, ","))
	case c.member:
		return c.ask("heartbeat generation=%d", c.gen)
	}
	protocol := "range"
	if c.m.rnd.IntN(8) == 0 {
		protocol = fmt.Sprintf("range:v%d", c.m.rnd.IntN(3))
	}
	return c.ask("join protocols=(%s,roundrobin)", protocol)
}

func (c *modelClient) restart() error {
	if c.static {
		c.old = c.id
		c.forget()
	}
	return nil
}

func (c *modelClient) forget() {
	c.run++
	c.id, c.member, c.joined, c.asked = "", false, false, nil
}

func (c *modelClient) stop() error {
	c.stopped = true
	c.forget()
	return nil
}

// zombie is an earlier incarnation that does not know yet.
func (c *modelClient) zombie() error {
	if c.old == "" || c.old == c.id {
		return nil
	}
	if err := c.m.do("heartbeat as=zombie member=%s instance=%s", c.old, c.name); err != nil {
		return err
	}
	answer := errorsIn(c.m.w.names["zombie"].answer)[0]
	if c.member && !c.m.excused && answer != 82 && answer != 25 {
		return fmt.Errorf("%s was replaced by %s, and is answered %s", c.old, c.id, errorText(answer))
	}
	return nil
}

func (c *modelClient) commit() error {
	if !c.member || c.asked != nil {
		return nil
	}
	return c.ask("commit generation=%d offsets=(t/%d:%d)", c.gen, c.m.rnd.IntN(4), c.m.rnd.IntN(100))
}

// answered reacts as Kafka's client does.
func (c *modelClient) answered(s *sent) error {
	errorCode := errorsIn(s.answer)[0]
	switch errorCode {
	case 0:
		return c.succeeded(s.answer)
	case 79:
		c.id = s.answer.(*kmsg.JoinGroupResponse).MemberID
	case 25:
		c.id, c.member, c.joined = "", false, false
	case 82:
		if !c.m.excused {
			return fmt.Errorf("%s is the newest holder of its instance and was fenced", c.m.w.title(s))
		}
		c.forget()
	case 22, 27:
		c.member, c.joined = false, false
	case 14, 15, 16, -1:
		if _, join := s.answer.(*kmsg.JoinGroupResponse); join {
			c.member = false
		}
	default:
		return fmt.Errorf("%s was answered %s", c.m.w.title(s), errorText(errorCode))
	}
	return nil
}

func (c *modelClient) succeeded(resp kmsg.Response) error {
	switch r := resp.(type) {
	case *kmsg.JoinGroupResponse:
		c.id, c.gen, c.joined, c.leads = r.MemberID, r.Generation, true, nil
		if r.LeaderID == r.MemberID && !r.SkipAssignment {
			for _, mb := range r.Members {
				c.leads = append(c.leads, mb.MemberID)
			}
		}
	case *kmsg.SyncGroupResponse:
		c.joined, c.member = false, true
		if got := string(r.MemberAssignment); got != "" && got != c.name {
			return fmt.Errorf("%s got the assignment of %s", c.name, got)
		}
	}
	return nil
}
