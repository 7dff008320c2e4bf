package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func encode(req kmsg.Request, corr int32) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, corr)
}

// readAll cuts a stream into frames the way a guard does, and returns how it ended.
func readAll(r io.Reader, each func(fr frame, raw []byte)) error {
	frames := newFrameReader(r)
	for {
		fr, err := frames.peek()
		if err != nil {
			return err
		}
		raw, err := frames.take(fr, func(int) bool { return true })
		if err != nil {
			return err
		}
		each(fr, raw)
	}
}

func TestFramesSurviveAnySplit(t *testing.T) {
	var stream []byte
	var want []frame
	for version := int16(3); version <= 13; version++ {
		for _, acks := range []int16{-1, 0, 1} {
			req := kmsg.NewPtrProduceRequest()
			req.Version, req.Acks, req.TransactionID = version, acks, kmsg.StringPtr("tx")
			raw := encode(req, int32(len(want)))
			want = append(want, frame{size: len(raw) - 4, key: 0, version: version, corr: int32(len(want))})
			stream = append(stream, raw...)
		}
	}
	for name, r := range map[string]io.Reader{
		"whole":     bytes.NewReader(stream),
		"bytewise":  iotest.OneByteReader(bytes.NewReader(stream)),
		"halves":    iotest.HalfReader(bytes.NewReader(stream)),
		"with data": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			i := 0
			err := readAll(r, func(fr frame, raw []byte) {
				if fr != want[i] {
					t.Errorf("frame %d is %+v, want %+v", i, fr, want[i])
				}
				i++
			})
			if !errors.Is(err, io.EOF) || i != len(want) {
				t.Fatalf("%d frames of %d, then %v", i, len(want), err)
			}
		})
	}
}

// TestFetchAsksForNoMoreThanABrokerReturns: the size is lowered where it lies, whatever stands before it.
func TestFetchAsksForNoMoreThanABrokerReturns(t *testing.T) {
	for version := int16(4); version <= 18; version++ {
		for _, asked := range []int32{1 << 20, maxFetch, maxFetch + 1, 1<<31 - 1} {
			req := kmsg.NewPtrFetchRequest()
			req.Version, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = version, asked, 6, asked
			req.ClusterID, req.SessionEpoch = kmsg.StringPtr("c"), 7
			raw := encode(req, 1)
			frames := newFrameReader(bytes.NewReader(raw))
			fr, err := frames.peek()
			if err != nil {
				t.Fatal(err)
			}
			if err := frames.capFetch(fr); err != nil {
				t.Fatal(err)
			}
			raw, err = frames.take(fr, func(int) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := parse(fr, raw)
			if err != nil {
				t.Fatal(err)
			}
			req.MaxWaitMillis, req.MaxBytes = min(asked, 600_000), min(asked, maxFetch)
			if !bytes.Equal(encode(got, 1), encode(req, 1)) {
				t.Errorf("version %d, %d bytes: became %+v", version, asked, got)
			}
		}
	}
}

func TestLargeFrameIsCollected(t *testing.T) {
	body := make([]byte, 5*trustedFrame+17)
	source := rand.NewChaCha8([32]byte{1})
	source.Read(body)
	raw := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	raw = append(raw, body...)
	binary.BigEndian.PutUint16(raw[4:], 3)
	var got []byte
	if err := readAll(bytes.NewReader(raw), func(_ frame, raw []byte) { got = raw }); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if !bytes.Equal(got, raw) {
		t.Fatal("the frame came out different")
	}
	if err := readAll(bytes.NewReader(raw[:len(raw)-1]), func(frame, []byte) {}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("a frame that ends early: %v", err)
	}
}

// FuzzFrame: whatever arrives, cutting it into frames, looking into them and decoding those that the front would get
// neither panics nor returns more bytes than arrived. What the front lets through of Produce requests can be decoded.
func FuzzFrame(f *testing.F) {
	for _, req := range []kmsg.Request{
		produceRequest(maxProduce, []byte("v"), "lines"), kmsg.NewPtrFetchRequest(), kmsg.NewPtrJoinGroupRequest(), kmsg.NewPtrSyncGroupRequest(),
		kmsg.NewPtrOffsetCommitRequest(), kmsg.NewPtrOffsetFetchRequest(), kmsg.NewPtrTxnOffsetCommitRequest(), kmsg.NewPtrApiVersionsRequest(),
		kmsg.NewPtrCreateTopicsRequest(), kmsg.NewPtrDeleteTopicsRequest(), kmsg.NewPtrIncrementalAlterConfigsRequest(),
	} {
		for version := range req.MaxVersion() + 1 {
			req.SetVersion(version)
			f.Add(encode(req, 7))
		}
	}
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0x06, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff})
	front := &front{epochs: &epochs{}}
	f.Fuzz(func(t *testing.T, stream []byte) {
		total := 0
		frames := newFrameReader(bytes.NewReader(stream))
		for {
			fr, err := frames.peek()
			if err != nil || fr.key == keyFetch && frames.capFetch(fr) != nil {
				break
			}
			raw, err := frames.take(fr, func(int) bool { return true })
			if err != nil {
				break
			}
			total += len(raw)
			if len(raw) != 4+fr.size {
				t.Fatalf("a frame of %d bytes came with %d", fr.size, len(raw))
			}
			req, _, err := parse(fr, raw)
			if err == nil && req.GetVersion() != fr.version {
				t.Fatalf("decoded version %d of a frame of version %d", req.GetVersion(), fr.version)
			}
			if fr.key == keyProduce && fr.version >= 3 && fr.version <= maxProduce {
				if _, looked := front.lookAtProduce(&fr, raw); looked == nil && err != nil {
					t.Fatalf("a Produce request passes that cannot be decoded: %v", err)
				}
			}
		}
		if total > len(stream) {
			t.Fatalf("%d bytes came out of %d", total, len(stream))
		}
	})
}
