package task

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
)

// progress is what a task commits beside its offsets: its stream time, the times of its operators, and a sequence number
// that tells two commits apart when no offset moved.
type progress struct {
	stream int64
	seq    uint64
}

var unknownTimes = progress{stream: -1}

// clocks are the stream times of operators that decide what is late. They belong to the state in the sense that a
// replay from the commit must decide the same, so they travel in the commit's metadata.
type clocks []clock

type clock struct {
	id    uint32 // hash of the name of the operator's store
	now   *int64
	saved int64
}

func (c *clocks) add(store string) *int64 {
	h := fnv.New32a()
	h.Write([]byte(store))
	now := new(int64)
	*now = -1
	*c = append(*c, clock{id: h.Sum32(), now: now, saved: -1})
	return now
}

func (c clocks) save() {
	for i := range c {
		c[i].saved = *c[i].now
	}
}

func (c clocks) restore() {
	for i := range c {
		*c[i].now = c[i].saved
	}
}

// metadataMagic begins our commit metadata; anything else is foreign and ignored.
const metadataMagic = 0x4d

// metadataVersion is the layout: magic(1) version(1) seq(8) stream time(8), then id(4) time(8) for each operator clock,
// all big-endian, in base64.
const metadataVersion = 1

const (
	metadataHead  = 18
	metadataClock = 12
)

func encodeMetadata(p progress, c clocks) string {
	b := make([]byte, 0, metadataHead+len(c)*metadataClock)
	b = append(b, metadataMagic, metadataVersion)
	b = binary.BigEndian.AppendUint64(b, p.seq)
	b = binary.BigEndian.AppendUint64(b, uint64(p.stream))
	for _, clock := range c {
		b = binary.BigEndian.AppendUint32(b, clock.id)
		b = binary.BigEndian.AppendUint64(b, uint64(*clock.now))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// decodeMetadata returns the progress and the operator times by id; ok is false for foreign metadata.
func decodeMetadata(s string) (p progress, times map[uint32]int64, ok bool) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(b) < metadataHead || b[0] != metadataMagic || b[1] != metadataVersion || (len(b)-metadataHead)%metadataClock != 0 {
		return unknownTimes, nil, false
	}
	p = progress{seq: binary.BigEndian.Uint64(b[2:]), stream: int64(binary.BigEndian.Uint64(b[10:]))}
	times = map[uint32]int64{}
	for b = b[metadataHead:]; len(b) > 0; b = b[metadataClock:] {
		times[binary.BigEndian.Uint32(b)] = int64(binary.BigEndian.Uint64(b[4:]))
	}
	return p, times, true
}

// CommitSeq returns the commit sequence number in the metadata of a committed offset. ok is false for metadata that is
// not ours. A commit whose outcome is in doubt happened exactly when the number is there.
func CommitSeq(metadata string) (seq uint64, ok bool) {
	p, _, ok := decodeMetadata(metadata)
	return p.seq, ok
}
