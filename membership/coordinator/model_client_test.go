package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// idle is what spares are assigned.
const idle = "\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"

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
	askedOf int // which coordinator, counting reloads

	producer int   // of its transactions
	version  int16 // of JoinGroup; the versions of the other requests are of the same time
	// excused is set while a fence of the rightful holder may happen: an append failed or was lost before a reload, or
	// (D10) Kafka forgot what it does not store. It ends with the next join that succeeds after it.
	excused bool
}

// choose makes it a client of some version of Kafka.
func (c *modelClient) choose() {
	c.version = int16(c.m.rnd.IntN(10))
	if c.static {
		c.version = int16(5 + c.m.rnd.IntN(5))
	}
}

// speaks is the version of another request of a client of its time.
func (c *modelClient) speaks(kind string) int16 {
	at := slices.Index([]int16{0, 5, 6, 7}, c.version)
	switch {
	case c.version >= 7:
		at = 3
	case c.version < 5:
		at = 0
	}
	return map[string][4]int16{"join": {c.version, 5, 6, c.version}, "sync": {2, 3, 4, 5}, "heartbeat": {2, 3, 4, 4}, "commit": {6, 7, 8, 9}, "txn-commit": {3, 3, 3, 5}}[kind][at]
}

func (c *modelClient) identity() string {
	if c.static {
		return ":" + c.name
	}
	return c.id
}

func (c *modelClient) who() string {
	return fmt.Sprintf("as=%s%d member=%s client=%s%s", c.name, c.run, c.id, c.name, c.instance())
}

func (c *modelClient) instance() string {
	if c.static {
		return " instance=" + c.name
	}
	return ""
}

func (c *modelClient) ask(format string, v ...any) error {
	kind, _, _ := strings.Cut(format, " ")
	if err := c.m.do(format+fmt.Sprintf(" version=%d ", c.speaks(kind))+c.who(), v...); err != nil {
		return err
	}
	c.askedOf = c.m.reloads
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
	c.choose()
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
	kind := []string{"heartbeat", "sync", "join", "commit", fmt.Sprintf("txn-commit producer=%d", len(c.m.clients)+1)}[c.m.rnd.IntN(5)]
	line := fmt.Sprintf("%s as=zombie member=%s instance=%s", kind, c.old, c.name)
	if c.m.rnd.IntN(5) == 0 {
		line = fmt.Sprintf("leave as=zombie members=(%s:%s)", c.old, c.name)
	} else if !strings.HasPrefix(line, "join") {
		line += fmt.Sprintf(" generation=%d", c.gen)
	}
	g := c.m.w.m.groups["g"]
	rightful := c.member && !c.excused && g != nil && g.byID[c.id] != nil // or the group was deleted
	if err := c.m.do("%s", line); err != nil {
		return err
	}
	said := "nothing, as if it were welcome"
	if answer := c.m.w.names["zombie"].answer; answer != nil {
		code := errorsIn(answer)[0]
		if code == 82 || code == 25 || code == 81 {
			return nil
		}
		said = errorText(code)
	}
	if rightful {
		c.m.expect("answer=zombie error=82")
		return fmt.Errorf("%s was replaced by %s, and is answered %s", c.old, c.id, said)
	}
	return nil
}

func (c *modelClient) commit() error {
	if !c.member || c.asked != nil {
		return nil
	}
	if c.m.rnd.IntN(2) == 0 {
		return c.ask("txn-commit producer=%d generation=%d offsets=(t/%d:%d)", c.producer, c.gen, c.m.rnd.IntN(4), c.m.rnd.IntN(100))
	}
	return c.ask("commit generation=%d offsets=(t/%d:%d,t/%d:%d)", c.gen, c.m.rnd.IntN(2), c.m.rnd.IntN(100), 2+c.m.rnd.IntN(2), c.m.rnd.IntN(100))
}

// endTxn ends the client's transaction. Its marker comes after all that belongs to it.
func (c *modelClient) endTxn() error {
	for _, h := range c.m.w.held {
		if h.append.Txn != nil && h.append.Txn.ProducerID == int64(c.producer) {
			return nil
		}
	}
	return c.m.do("end-txn %s producer=%d", []string{"commit", "abort"}[c.m.rnd.IntN(2)], c.producer)
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
		if !c.excused {
			c.m.expect("answer=%s error=0", s.name)
			return fmt.Errorf("%s is the newest holder of its instance and was fenced", c.m.w.title(s))
		}
		c.forget()
	case 22, 27, 69: // the last: an operator removed everybody, and the group
		c.member, c.joined = false, false
	case 14, 15, 16, -1, 81:
		if _, join := s.answer.(*kmsg.JoinGroupResponse); join {
			c.member = false
		}
	default:
		c.m.expect("answer=%s error=0", s.name)
		return fmt.Errorf("%s was answered %s", c.m.w.title(s), errorText(errorCode))
	}
	return nil
}

func (c *modelClient) succeeded(resp kmsg.Response) error {
	switch r := resp.(type) {
	case *kmsg.JoinGroupResponse:
		c.id, c.gen, c.joined, c.leads = r.MemberID, r.Generation, true, nil
		if c.askedOf == c.m.reloads {
			c.excused = false
		}
		if r.LeaderID == r.MemberID && !r.SkipAssignment {
			for _, mb := range r.Members {
				c.leads = append(c.leads, mb.MemberID)
			}
		}
	case *kmsg.SyncGroupResponse:
		c.joined, c.member = false, true
		if got := string(r.MemberAssignment); got != "" && got != c.name && got != idle {
			c.m.expect("answer=%s%d assignment=%s", c.name, c.run, c.name)
			return fmt.Errorf("%s got the assignment of %s", c.name, got)
		}
	}
	return nil
}
