package cluster

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A garbler makes requests that no client would send: of every key and version that is served, with values that hurt, and
// frames of them that are broken in the ways frames break. What it makes depends on its seed alone.
type garbler struct {
	*rand.Rand
	served    []kmsg.ApiVersionsResponseApiKey
	ids       [][16]byte
	producers []producer
}

func newGarbler(seed uint64, served map[int16]kmsg.ApiVersionsResponseApiKey, ids [][16]byte, producers []producer) *garbler {
	g := &garbler{Rand: rand.New(rand.NewPCG(7, seed)), ids: ids, producers: producers}
	for _, k := range served {
		g.served = append(g.served, k)
	}
	slices.SortFunc(g.served, func(a, b kmsg.ApiVersionsResponseApiKey) int { return int(a.ApiKey) - int(b.ApiKey) })
	return g
}

func pick[T any](g *garbler, from ...T) T { return from[g.IntN(len(from))] }

// one reports true once in n times.
func (g *garbler) one(n int) bool { return g.IntN(n) == 0 }

// connection is what one client sends: a few frames, most of them whole.
func (g *garbler) connection() []byte {
	if g.one(50) {
		return g.noise(1 + g.IntN(200))
	}
	var stream []byte
	broken := g.one(2)
	for range 1 + g.IntN(30) {
		frame := g.frame()
		if broken && g.one(8) {
			frame = g.damage(frame)
		}
		stream = append(stream, frame...)
	}
	if broken && g.one(4) {
		stream = stream[:g.IntN(len(stream)+1)]
	}
	return stream
}

func (g *garbler) frame() []byte {
	k := pick(g, g.served...)
	if g.one(4) {
		k = g.served[0] // Produce
	}
	req := kmsg.RequestForKey(k.ApiKey)
	req.SetVersion(k.MinVersion + int16(g.IntN(int(k.MaxVersion-k.MinVersion)+1)))
	g.fill(reflect.ValueOf(req).Elem(), "")
	return encode(req, int32(g.Uint32()))
}

// fill gives every field of a request a value.
func (g *garbler) fill(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "Version" && f.Name != "UnknownTags" {
				g.fill(v.Field(i), f.Name)
			}
		}
	case reflect.String:
		v.SetString(g.text(name))
	case reflect.Pointer:
		if g.one(4) {
			v.SetZero()
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		g.fill(v.Elem(), name)
	case reflect.Slice:
		g.fillSlice(v, name)
	case reflect.Array: // a topic's id
		v.Set(reflect.ValueOf(pick(g, g.ids...)).Convert(v.Type()))
	case reflect.Bool:
		v.SetBool(g.one(2))
	case reflect.Float64:
		v.SetFloat(pick(g, 0, 1, -1, math.NaN(), math.Inf(1), math.MaxFloat64))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(g.number(name, v.Type().Bits()))
	}
}

func (g *garbler) fillSlice(v reflect.Value, name string) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes(g.bytes(name))
		return
	}
	n := pick(g, 0, 1, 1, 1, 2, 3)
	switch {
	case g.one(8):
		v.SetZero()
		return
	case g.one(200):
		n = 100
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		g.fill(v.Index(i), name)
	}
}

// texts are names of topics, groups, transactional ids, configs, dirs, hosts, …
var texts = []string{
	"lines", "words", "t0", "t1", "t2", "g0", "g1", "tx0", "tx1", "consumer", "range", offsetsTopic, "__transaction_state", "no such",
	"", ".", "..", "../../up", "a/b", "a\x00b", "\x00", "\xff\xfe", "t.0", "t_0", strings.Repeat("n", 249), strings.Repeat("n", 250),
	"retention.ms", "segment.bytes", "cleanup.policy", "log.cleaner.backoff.ms", "max.message.bytes", "0", "-1", "compact", "1e99",
	"(", "a*", "((a{1,100}){1,100}){1,100}",
}

var longText = strings.Repeat("x", math.MaxInt16)

func (g *garbler) text(name string) string {
	switch {
	case g.one(300):
		return longText
	case name == "Topic" && g.one(2):
		return pick(g, "lines", "words", "t0", "t1", offsetsTopic)
	}
	return pick(g, texts...)
}

func (g *garbler) number(name string, bits int) int64 {
	n := pick(g, 0, 0, 1, 1, 2, 3, -1, -1, -2, -3, -4, -5, 7, 100, 10_000, 1<<31-1, -1<<31, math.MaxInt64, math.MinInt64, int64(g.Uint64()))
	switch name {
	case "Partition", "Partitions", "LeaderEpoch", "CurrentLeaderEpoch", "ReplicationFactor", "Replicas":
		n = pick(g, 0, 0, 0, 1, -1, -1, n)
	case "NumPartitions", "Count": // those that may be made shall not be many
		n = pick[int64](g, 1, 2, 3, -1, 0, 10_001, 1<<31-1, -1<<31)
	case "Acks": // most of what is wrong with acks=0 ends the connection
		n = pick(g, -1, 1, -1, 1, -1, 1, -1, 1, 0, n)
	case "MaxWaitMillis", "RebalanceTimeoutMillis": // a request that parks keeps its connection, as in Kafka
		n = pick[int64](g, 0, 1, 20, -1, -1<<31)
	case "SessionTimeoutMillis":
		n = pick[int64](g, 6000, 6000, 6000, 0, -1, 1<<31-1, -1<<31)
	case "ProducerID":
		n = pick(g, pick(g, g.producers...).id, n)
	case "ProducerEpoch":
		n = pick(g, 0, 0, 1, 2, lastEpoch, math.MaxInt16, n)
	case "TransactionTimeoutMillis":
		n = pick(g, 1, 50, 60_000, n)
	case "ResourceType":
		n = pick(g, 2, 4, 8, 16, 32, n)
	}
	shift := 64 - bits
	return n << shift >> shift
}

func (g *garbler) bytes(name string) []byte {
	switch {
	case g.one(10):
		return nil
	case g.one(10):
		return []byte{}
	case name == "Records" && !g.one(10):
		return g.batch()
	}
	return g.noise(g.IntN(100))
}

func (g *garbler) noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

// batch is a record batch with something wrong, or nothing.
func (g *garbler) batch() []byte {
	count := int32(1 + g.IntN(3))
	var records []byte
	for range count {
		records = append(records, g.record()...)
	}
	codec := uint16(0)
	if g.one(3) {
		codec = uint16(1 + g.IntN(4))
		records = packers[codec](records)
		if g.one(3) {
			records = g.flip(records, 0)
		}
	}
	by := pick(g, producer{id: -1, epoch: -1, sequence: -1}, pick(g, g.producers...), producer{id: int64(g.Uint64()), epoch: int16(g.Uint32())})
	batch := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: int16(codec), LastOffsetDelta: count - 1, NumRecords: count,
		FirstTimestamp: g.number("", 64), MaxTimestamp: g.number("", 64),
		ProducerID: by.id, ProducerEpoch: by.epoch, FirstSequence: pick(g, 0, 0, -1, int32(g.Uint32())), Records: records,
	}
	if g.one(3) {
		batch.Attributes |= int16(pick(g, attributeTransactional, attributeTransactional, attributeControl, attributeAppendTime, int(g.Uint32())))
	}
	if g.one(5) {
		batch.ProducerEpoch = int16(g.number("ProducerEpoch", 16))
	}
	if g.one(4) {
		batch.NumRecords = int32(g.number("", 32))
		batch.LastOffsetDelta = batch.NumRecords - 1
	}
	raw := seal(batch)
	if g.one(10) {
		raw = g.flip(raw, 0)
		if g.one(2) && len(raw) >= batchHeaderSize {
			binary.BigEndian.PutUint32(raw[batchCRCAt:], crc32.Checksum(raw[batchAttributesAt:], castagnoli))
		}
	}
	return raw
}

func (g *garbler) record() []byte {
	body := kbin.AppendVarlong([]byte{0}, g.number("", 64))
	body = kbin.AppendVarint(body, int32(g.number("", 32)))
	body = kbin.AppendVarintBytes(body, g.noise(g.IntN(5)))
	body = kbin.AppendVarintBytes(body, g.noise(g.IntN(20)))
	body = append(body, 0)
	length := int32(len(body))
	switch {
	case g.one(10):
		length += pick(g, 1, -1, 100, -100, int32(g.Uint32()))
	case g.one(10):
		body = g.flip(body, 0)
	}
	return append(kbin.AppendVarint(nil, length), body...)
}

// flip changes a few bytes from a place on.
func (g *garbler) flip(b []byte, from int) []byte {
	for range 1 + g.IntN(4) {
		if len(b) > from {
			b[from+g.IntN(len(b)-from)] = byte(g.Uint32())
		}
	}
	return b
}

// damage breaks a frame.
func (g *garbler) damage(frame []byte) []byte {
	const header = 4 + minFrame
	resize := func() { binary.BigEndian.PutUint32(frame, uint32(len(frame)-4)) }
	at := header + g.IntN(len(frame)-header+1)
	switch g.IntN(8) {
	case 0: // cut, and the length says so
		frame = frame[:at]
		resize()
	case 1: // other bytes
		frame = g.flip(frame, header)
	case 2: // a count or length of four bytes
		if at+4 <= len(frame) {
			binary.BigEndian.PutUint32(frame[at:], uint32(g.number("", 32)))
		}
	case 3: // one of up to five
		frame = slices.Concat(frame[:at], binary.AppendUvarint(nil, uint64(uint32(g.number("", 32)))), frame[at:])
		resize()
	case 4: // another version's body
		binary.BigEndian.PutUint16(frame[6:], uint16(g.number("ProducerEpoch", 4)))
	case 5: // another request's body
		binary.BigEndian.PutUint16(frame[4:], uint16(pick(g, g.served...).ApiKey))
	case 6: // something inserted
		frame = slices.Concat(frame[:at], g.noise(g.IntN(20)), frame[at:])
		resize()
	case 7: // a length that lies
		binary.BigEndian.PutUint32(frame, uint32(int64(len(frame)-4)+g.number("", 32)))
	}
	return frame
}
