package cluster

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// testBatch is a batch with the right checksum and length, whatever is in it.
func testBatch(codec uint16, count int32, records []byte) []byte {
	return seal(kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: int16(codec), LastOffsetDelta: count - 1,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: count, Records: records,
	})
}

// testRecord is a record whose length is wrong by lie.
func testRecord(lie int32, tail ...byte) []byte {
	body := []byte{0, 0, 0}
	body = kbin.AppendVarintBytes(body, []byte("key"))
	body = kbin.AppendVarintBytes(body, []byte("value"))
	if len(tail) == 0 {
		tail = []byte{0} // no headers
	}
	body = append(body, tail...)
	return append(kbin.AppendVarint(nil, int32(len(body))+lie), body...)
}

// packers pack records as clients do.
var packers = map[uint16]func([]byte) []byte{
	0: func(b []byte) []byte { return b },
	1: func(b []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		w.Write(b)
		w.Close()
		return out.Bytes()
	},
	2: func(b []byte) []byte { return s2.EncodeSnappy(nil, b) },
	3: func(b []byte) []byte {
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		w.Write(b)
		w.Close()
		return out.Bytes()
	},
	4: func(b []byte) []byte {
		w, _ := zstd.NewWriter(nil)
		return w.EncodeAll(b, nil)
	},
}

// xerialChunks is the Java form of snappy.
func xerialChunks(b []byte, size int) []byte {
	out := append(append([]byte{}, xerial...), 0, 0, 0, 1, 0, 0, 0, 1)
	for len(b) > 0 {
		n := min(size, len(b))
		chunk := s2.EncodeSnappy(nil, b[:n])
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(chunk))), chunk...)
		b = b[n:]
	}
	return out
}

func TestBatchesOfClientsPass(t *testing.T) {
	var records []coordinator.Record
	for i := range 500 {
		records = append(records, coordinator.Record{Key: fmt.Appendf(nil, "key %d", i), Value: bytes.Repeat([]byte("v"), i)})
	}
	plain := appendRecords(nil, records)
	withHeaders := testRecord(0, 4, 2, 'a', 2, 'x', 2, 'b', 1) // two headers, the second without value
	for codec, pack := range packers {
		if why := checkBatch(testBatch(codec, 500, pack(plain))); why != nil {
			t.Errorf("codec %d: %v", codec, why)
		}
		if why := checkBatch(testBatch(codec, 1, pack(withHeaders))); why != nil {
			t.Errorf("codec %d, headers: %v", codec, why)
		}
	}
	if why := checkBatch(testBatch(2, 500, xerialChunks(plain, 1000))); why != nil {
		t.Errorf("snappy in chunks: %v", why)
	}
}

func TestBatchesThatLieAreRefused(t *testing.T) {
	good := testRecord(0)
	for name, records := range map[string][]byte{
		"length too long":          testRecord(50),
		"length too short":         testRecord(-3),
		"length negative":          testRecord(-200),
		"length of 2^40":           append(kbin.AppendVarlong(nil, 1<<40), good...),
		"length without end":       bytes.Repeat([]byte{0xff}, 20),
		"one record more":          append(testRecord(0), good...),
		"no record":                nil,
		"half a record":            good[:len(good)/2],
		"negative key length":      append([]byte{12}, 0, 0, 0, 3, 1, 0),
		"headers that do not fit":  testRecord(0, 200, 1),
		"negative headers":         testRecord(0, 1),
		"header without key":       testRecord(0, 2, 1, 1),
		"header value beyond end":  testRecord(0, 2, 2, 'a', 100),
		"something behind headers": testRecord(0, 0, 0),
	} {
		for codec, pack := range packers {
			if why := checkBatch(testBatch(codec, 1, pack(records))); why != kerr.InvalidRecord {
				t.Errorf("%s, codec %d: %v", name, codec, why)
			}
		}
	}
	for codec := uint16(1); codec < 8; codec++ {
		if why := checkBatch(testBatch(codec, 1, []byte("\x00\x01 no compression makes this"))); why != kerr.InvalidRecord {
			t.Errorf("nonsense, codec %d: %v", codec, why)
		}
	}
	for _, count := range []int32{0, -1, -5, 2, 1 << 30, -1 << 31} {
		if why := checkBatch(testBatch(0, count, good)); why != kerr.InvalidRecord {
			t.Errorf("count %d: %v", count, why)
		}
	}
	whole := testBatch(0, 1, good)
	for n := range whole {
		if why := checkBatch(whole[:n]); why == nil {
			t.Errorf("%d bytes of %d pass", n, len(whole))
		}
	}
	if why := checkBatch(testBatch(attributeControl, 1, good)); why != kerr.InvalidRecord {
		t.Errorf("a control batch: %v", why)
	}
	damaged := testBatch(0, 1, testRecord(-3))
	damaged[len(damaged)-1] ^= 1
	if why := checkBatch(damaged); why != kerr.CorruptMessage {
		t.Errorf("wrong checksum: %v", why)
	}
}

// TestBombsAreRefused: a batch of a few bytes that unpacks to more than the bound is not unpacked further, and one that
// claims to costs nothing.
func TestBombsAreRefused(t *testing.T) {
	body := kbin.AppendVarintBytes([]byte{0, 0, 0, 1}, make([]byte, maxUncompressed)) // no key, and nothing wrong but its size
	body = append(body, 0)
	bomb := append(kbin.AppendVarint(nil, int32(len(body))), body...)
	for codec, pack := range packers {
		packed := pack(bomb)
		why := checkBatch(testBatch(codec, 1, packed))
		if codec == 0 && why != nil || codec != 0 && why != kerr.InvalidRecord {
			t.Errorf("codec %d, %d bytes: %v", codec, len(packed), why)
		}
	}
	if why := checkBatch(testBatch(2, 1, xerialChunks(bomb, 32<<10))); why != kerr.InvalidRecord {
		t.Errorf("snappy in chunks: %v", why)
	}
	claim := append(binary.AppendUvarint(nil, 1<<32-1), 0)
	allocated := testing.AllocsPerRun(1, func() {
		if why := checkBatch(testBatch(2, 1, claim)); why != kerr.InvalidRecord {
			t.Errorf("a claim of 4 GiB: %v", why)
		}
	})
	if allocated > 100 {
		t.Errorf("%v allocations", allocated)
	}
}

// TestAppendTimeIsTakenBack: the batch is as if the client had not claimed it, its checksum too.
func TestAppendTimeIsTakenBack(t *testing.T) {
	f := &front{epochs: &epochs{}}
	batch, want := testBatch(attributeAppendTime, 1, testRecord(0)), testBatch(0, 1, testRecord(0))
	if why := f.refuse(nil, "lines", batch); why != nil || !bytes.Equal(batch, want) {
		t.Errorf("%v, % x, want % x", why, batch, want)
	}
}

// FuzzBatch: what passes is what kfake and clients can read.
func FuzzBatch(f *testing.F) {
	for codec, pack := range packers {
		f.Add(codec, int32(1), pack(testRecord(0)))
		f.Add(codec, int32(2), pack(append(testRecord(0), testRecord(-3)...)))
	}
	f.Add(uint16(2), int32(1), xerialChunks(testRecord(0), 5))
	f.Fuzz(func(t *testing.T, codec uint16, count int32, records []byte) {
		if checkBatch(testBatch(codec, count, records)) != nil {
			return
		}
		plain, err := kgo.DefaultDecompressor().Decompress(records, kgo.CompressionCodecType(codec&attributeCodec))
		if err != nil {
			t.Fatal(err)
		}
		for range count {
			record := kmsg.NewRecord()
			if err := record.ReadFrom(plain); err != nil {
				t.Fatal(err)
			}
			n, size := binary.Varint(plain)
			plain = plain[int(n)+size:]
		}
		if len(plain) > 0 {
			t.Fatalf("%d bytes are left", len(plain))
		}
	})
}

func BenchmarkCheckBatch(b *testing.B) {
	var records []coordinator.Record
	for i := range 1000 {
		records = append(records, coordinator.Record{Key: fmt.Appendf(nil, "key %d", i), Value: fmt.Appendf(nil, "%0100d", i)})
	}
	plain := appendRecords(nil, records)
	for codec, name := range []string{"plain", "gzip", "snappy", "lz4", "zstd"} {
		b.Run(name, func(b *testing.B) {
			batch := testBatch(uint16(codec), 1000, packers[uint16(codec)](plain))
			b.ReportAllocs()
			for b.Loop() {
				if why := checkBatch(batch); why != nil {
					b.Fatal(why)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/record")
		})
	}
}
