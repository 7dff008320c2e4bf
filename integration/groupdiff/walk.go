package groupdiff

import (
	"fmt"
	"math/rand/v2"
)

var (
	statics  = []string{"a", "b", "c"}
	dynamics = []string{"x", "y"}
	offers   = [][]string{{"range", "roundrobin"}, {"roundrobin", "range"}, {"range"}, {"sticky"}}
)

// walk is a random sequence: mostly what clients do, in versions from the oldest to the newest, and now and then an id
// that is not theirs, a generation that is not the present one, or a request that nobody should send.
func walk(seed uint64, steps int) func(*pair) (request, bool) {
	w := walker{rand.New(rand.NewPCG(seed, 345))}
	return func(p *pair) (request, bool) {
		if len(p.sent) == steps {
			return request{}, false
		}
		return w.next(), true
	}
}

type walker struct{ *rand.Rand }

func (w walker) pick(list []string) string { return list[w.IntN(len(list))] }

func (w walker) version(from, to int16) int16 { return from + int16(w.IntN(int(to-from)+1)) }

func (w walker) one(in int) bool { return w.IntN(in) == 0 }

// next chooses a request. The version ranges are those that Kafka 4.4 serves.
func (w walker) next() request {
	r := w.who()
	switch n := w.IntN(100); {
	case n < 36:
		r.kind, r.version, r.offers = "join", w.version(2, 9), w.offers()
		if r.identity == current && w.one(3) {
			r.identity = none
		}
		if w.one(6) {
			r.metadata = fmt.Sprint(w.IntN(3))
		}
		w.misfit(&r)
	case n < 58:
		r.kind, r.version = "sync", w.version(0, 5)
		w.misfit(&r)
	case n < 67:
		r.kind, r.version = "heartbeat", w.version(0, 4)
	case n < 74:
		r.kind, r.version, r.member = "leave", w.version(0, 5), w.one(2)
		if w.one(2) {
			r.with = w.pick(statics)
		}
		if r.with != "" && w.one(3) {
			r.of = w.pick([]string{r.with, r.with, "a", "x"})
		}
	case n < 81:
		r.kind, r.version, r.simple = "commit", w.version(2, 10), w.one(4)
		w.offset(&r)
	case n < 85:
		r.kind, r.version, r.simple = "txn-commit", w.version(0, 6), w.one(4)
		w.offset(&r)
	case n < 87:
		r.kind, r.commit = "end-txn", w.one(2)
	case n < 91:
		r.kind, r.version, r.stable = "fetch", w.version(1, 10), w.one(2)
		r.all, r.more = r.version > 1 && w.one(2), r.version >= 8 && w.one(3)
	case n < 94:
		r.kind, r.version, r.all = "describe", w.version(0, 6), w.one(2)
		r.more = w.one(4)
	case n < 96:
		r.kind, r.version = "list", w.version(0, 5)
		r.all = r.version >= 4 && w.one(2)
		if r.version >= 5 && w.one(2) {
			r.types = w.pick([]string{"Classic", "consumer"})
		}
	case n < 98:
		r.kind, r.version, r.more = "delete", w.version(0, 3), w.one(3)
	default:
		r.kind, r.topic, r.at, r.more = "offset-delete", w.pick([]string{topicName, absentTopic}), int32(w.IntN(2)), w.one(2)
	}
	return r
}

// misfit makes of a join or sync now and then one that no group takes: another protocol type or none, a session timeout
// that is out of bounds, or no protocol.
func (w walker) misfit(r *request) {
	if !w.one(20) {
		return
	}
	switch w.IntN(4) {
	case 0:
		r.kindOf = "connect"
	case 1:
		r.kindOf = "null"
	case 2:
		r.session = int32(1 + w.IntN(2)*1_900_000)
	case 3:
		r.offers = nil
	}
}

// who chooses a client and what it says of itself.
func (w walker) who() request {
	r := request{client: w.pick(dynamics), identity: current}
	static := w.IntN(3) > 0
	if static {
		r.client = w.pick(statics)
	}
	switch w.IntN(20) {
	case 0:
		r.identity = old
	case 1:
		r.identity = bogus
	case 2:
		r.identity = w.pick(statics)
	}
	switch {
	case static && !w.one(12):
		r.instance = &r.client
	case !static && w.one(15):
		other := w.pick(statics)
		r.instance = &other
	}
	if w.one(12) {
		r.shift = int32(w.IntN(3)) - 1
	}
	return r
}

func (w walker) offers() []string {
	switch n := w.IntN(24); {
	case n == 0:
		return offers[3]
	case n < 3:
		return offers[2]
	case n < 6:
		return offers[1]
	}
	return offers[0]
}

func (w walker) offset(r *request) {
	r.topic = w.pick([]string{topicName, topicName, topicName, absentTopic})
	r.at, r.offset, r.long = int32(w.IntN(3)), w.Int64N(100), w.one(8)
}
