package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// world is a coordinator with everything around it: a clock, the log of __consumer_offsets, and clients whose requests
// wait for answers.
type world struct {
	cfg   Config
	m     *Machine
	now   time.Time
	start time.Time
	ids   map[string]int

	requests map[uint64]*sent // not answered yet
	done     map[uint64]*sent // answered, or asked of a coordinator that is gone
	twice    []*sent          // answered twice
	last     uint64
	names    map[string]*sent  // the newest request of each name
	forced   map[uint64]string // names of forced rebalances under way

	log  map[int32][]LogRecord
	hold bool
	held []heldAppend

	out string // printed since the last take
}

// sent is a request that was sent, and its answer if there is one.
type sent struct {
	id     uint64
	name   string
	req    kmsg.Request
	answer kmsg.Response
	lost   bool // its coordinator crashed

	forgotten bool // it is one that Kafka never answers
}

// heldAppend is an append whose acknowledgement a script holds back.
type heldAppend struct {
	append  *Append
	written bool // it is in the log already
}

func newWorld(p Profile, a *args) *world {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &world{start: start, now: start}
	w.cfg = Config{
		Profile:                p,
		MinSessionTimeout:      a.duration("min-session", 0),
		MaxSessionTimeout:      a.duration("max-session", 0),
		InitialRebalanceDelay:  a.duration("delay", 0),
		NewMemberJoinTimeout:   a.duration("new-member-timeout", 0),
		MaxGroupSize:           int(a.number("max-size", 0)),
		OffsetsPartitions:      int32(a.number("offsets-partitions", 1)),
		OffsetMetadataMaxSize:  int(a.number("max-metadata", 0)),
		OffsetsRetention:       a.duration("retention", 0),
		ExpiryInterval:         a.duration("expiry-interval", 0),
		AbsentStaticsKeepClock: a.bool("absent-keep-clock"),
		AbsentStaticAfter:      a.duration("absent-after", 0),
		NewID:                  w.newID,
	}
	w.ids = make(map[string]int)
	w.names = make(map[string]*sent)
	w.requests = make(map[uint64]*sent)
	w.done = make(map[uint64]*sent)
	w.forced = make(map[uint64]string)
	w.log = make(map[int32][]LogRecord)
	w.m = New(w.cfg)
	if !a.bool("not-loaded") {
		for p := range w.cfg.OffsetsPartitions {
			w.step(Loaded{Partition: p})
		}
	}
	w.step(TopicChanged{Topic: "t", ID: topicID(1), Partitions: 4})
	return w
}

// newID numbers the member ids of one prefix: a-1, a-2, …
func (w *world) newID(prefix string) string {
	w.ids[prefix]++
	return fmt.Sprint(w.ids[prefix])
}

func topicID(n byte) [16]byte { return [16]byte{15: n} }

func (w *world) printf(format string, v ...any) { w.out += fmt.Sprintf(format+"\n", v...) }

// take returns what was printed since the last take.
func (w *world) take() string {
	s := w.out
	w.out = ""
	return s
}

// step gives the machine an event and carries out its actions, and those that follow from them.
func (w *world) step(ev Event) {
	var later []Event
	for _, a := range w.m.Step(w.now, ev) {
		switch a := a.(type) {
		case *Reply:
			w.replied(a)
		case *BadRecord:
			w.printf("%v", a)
		case *Forced:
			w.forcedRebalance(a)
		case *Append:
			if w.hold {
				w.held = append(w.held, heldAppend{append: a})
				w.printf("append %d held: %s", a.ID, w.describeAppend(a))
				continue
			}
			w.write(a)
			later = append(later, Appended{ID: a.ID})
		}
	}
	for _, ev := range later {
		w.step(ev)
	}
}

// request sends a request as the wire would carry it: what its version lacks is lost.
func (w *world) request(name, clientID, host string, req kmsg.Request) *sent {
	wire := req.AppendTo(nil)
	decoded := kmsg.RequestForKey(req.Key())
	decoded.SetVersion(req.GetVersion())
	if err := decoded.ReadFrom(wire); err != nil {
		panic(fmt.Sprintf("request %T does not survive the wire: %v", req, err))
	}
	w.last++
	if name == "" {
		name = fmt.Sprintf("#%d", w.last)
	}
	s := &sent{id: w.last, name: name, req: decoded}
	w.requests[s.id] = s
	w.names[name], w.names["last"] = s, s
	w.step(Request{ID: s.id, ClientID: clientID, Host: host, Req: decoded})
	if s.answer == nil {
		w.printf("%s parked", w.title(s))
	}
	return s
}

// replied notes an answer as the wire would carry it.
func (w *world) replied(r *Reply) {
	s := w.requests[r.ID]
	if s == nil {
		if again := w.done[r.ID]; again != nil && !again.lost {
			w.twice = append(w.twice, again)
			w.printf("%s ANSWERED TWICE", w.title(again))
		}
		return
	}
	delete(w.requests, s.id)
	w.done[s.id] = s
	wire := r.Resp.AppendTo(nil)
	s.answer = kmsg.ResponseForKey(r.Resp.Key())
	s.answer.SetVersion(s.req.GetVersion())
	if err := s.answer.ReadFrom(wire); err != nil {
		panic(fmt.Sprintf("answer %T does not survive the wire: %v", r.Resp, err))
	}
	w.printf("%s: %s", w.title(s), formatAnswer(s.answer))
}

func (w *world) title(s *sent) string { return s.name + " " + verb(s.req) }

// parked lists the requests that are not answered, oldest first.
func (w *world) parked() []*sent {
	var list []*sent
	for _, s := range w.requests {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *sent) int { return int(a.id) - int(b.id) })
	return list
}

// advance moves the clock and stops at every deadline on the way.
func (w *world) advance(d time.Duration) {
	end := w.now.Add(d)
	for {
		due, ok := w.m.NextDeadline()
		if !ok || due.After(end) {
			break
		}
		if due.After(w.now) {
			w.now = due
		}
		w.tick()
	}
	w.now = end
	w.tick()
}

// tick moves the machine's clock; what that brings is printed with the time.
func (w *world) tick() {
	before := w.take()
	w.step(Tick{})
	for line := range strings.Lines(w.take()) {
		before += fmt.Sprintf("[%v] %s", w.now.Sub(w.start), line)
	}
	w.out = before
}

// write puts an append into the log.
func (w *world) write(a *Append) {
	for _, r := range a.Records {
		w.log[a.Partition] = append(w.log[a.Partition], LogRecord{Record: r, Txn: a.Txn})
	}
}

// release acknowledges held appends: all of them, or one by its id. err is the outcome.
func (w *world) release(id uint64, err *kerr.Error) error {
	found := false
	for _, h := range slices.Clone(w.held) {
		if id != 0 && h.append.ID != id {
			continue
		}
		found = true
		if err == nil {
			w.writeHeld(h.append.ID)
		}
		w.held = slices.DeleteFunc(w.held, func(other heldAppend) bool { return other.append.ID == h.append.ID })
		w.step(Appended{ID: h.append.ID, Err: err})
	}
	if !found {
		return fmt.Errorf("no such append is held")
	}
	return nil
}

// writeHeld makes held appends durable without acknowledging them, up to one that they reach the log before.
func (w *world) writeHeld(last uint64) {
	for i := range w.held {
		if h := &w.held[i]; !h.written && h.append.ID <= last {
			h.written = true
			w.write(h.append)
		}
	}
}

// crash loses the machine and everything it did not store; what was asked of it is never answered.
func (w *world) crash() {
	for _, s := range w.parked() {
		w.printf("%s lost", w.title(s))
		s.lost = true
		delete(w.requests, s.id)
		w.done[s.id] = s
	}
	configured := w.m.settings // their owner keeps them
	w.m = New(w.cfg)
	w.m.settings = configured
	w.held = nil
	clear(w.forced)
	w.step(TopicChanged{Topic: "t", ID: topicID(1), Partitions: 4})
}

func (w *world) allPartitions() []int32 {
	var list []int32
	for p := range w.cfg.OffsetsPartitions {
		list = append(list, p)
	}
	return list
}

func (w *world) load(partitions ...int32) {
	for _, p := range partitions {
		w.step(Loaded{Partition: p, Records: w.log[p]})
	}
}

func (w *world) unload(partitions ...int32) {
	w.held = slices.DeleteFunc(w.held, func(h heldAppend) bool { return slices.Contains(partitions, h.append.Partition) })
	for _, p := range partitions {
		w.step(Unloaded{Partition: p})
	}
}

// endTxn writes a transaction's marker to the log and tells the machine.
func (w *world) endTxn(ev TxnEnded) {
	for p := range w.log {
		w.log[p] = append(w.log[p], LogRecord{Marker: &ev})
	}
	w.step(ev)
}
