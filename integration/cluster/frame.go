package cluster

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// maxFrame is Kafka's default of socket.request.max.bytes.
	maxFrame = 100 << 20

	// minFrame is a request header without client id: key, version, correlation id.
	minFrame = 8

	// trustedFrame is the size up to which the length prefix alone may cause an allocation. A longer frame is collected as
	// its bytes arrive, so that a lying prefix costs its sender as much as us.
	trustedFrame = 1 << 20

	// firstPart is what is reserved for a frame that is collected, before any of it has arrived.
	firstPart = 64 << 10

	// readBuffer bounds how far into a frame the listener looks before it decides where the frame goes. Only a Produce
	// request is looked into beyond its fixed header (see lookInto), so only there must client id and transactional id fit.
	readBuffer = 16 << 10
)

// Keys that the listener treats differently from the rest.
const (
	keyProduce          = 0
	keyOffsetCommit     = 8
	keyOffsetFetch      = 9
	keyJoinGroup        = 11
	keyHeartbeat        = 12
	keyLeaveGroup       = 13
	keySyncGroup        = 14
	keyDescribeGroups   = 15
	keyListGroups       = 16
	keyAPIVersions      = 18
	keyCreateTopics     = 19
	keyDeleteTopics     = 20
	keyDeleteRecords    = 21
	keyInitProducerID   = 22
	keyAddPartitions    = 24
	keyEndTxn           = 26
	keyTxnOffsetCommit  = 28
	keyCreatePartitions = 37
	keyDeleteGroups     = 42
	keyOffsetDelete     = 47
)

var errFrame = errors.New("malformed frame")

// A frame is what the listener knows of a request before it has read its body.
type frame struct {
	size    int // bytes after the length prefix
	key     int16
	version int16
	corr    int32

	noReply bool      // a Produce request with acks=0, the only request that gets no answer
	txn     *producer // a Produce request's transactional producer, as its first batch names it; nil if there is none
	offsets mention   // of the offsets topic in a Produce request
}

// A frameReader cuts a byte stream into frames and trusts none of their lengths.
type frameReader struct {
	r         *bufio.Reader
	offsetsID [16]byte // of the offsets topic, which Produce names by its id
}

func newFrameReader(r io.Reader) frameReader {
	return frameReader{r: bufio.NewReaderSize(r, readBuffer)}
}

// peek waits for the next frame's fixed header and consumes nothing. The error is io.EOF only between two frames.
func (f frameReader) peek() (frame, error) {
	b, err := f.r.Peek(4 + minFrame)
	if err != nil {
		if len(b) > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
	size := int32(binary.BigEndian.Uint32(b))
	if size < minFrame || size > maxFrame {
		return frame{}, fmt.Errorf("%w: length %d is not in %d..%d", errFrame, size, minFrame, maxFrame)
	}
	fr := frame{
		size:    int(size),
		key:     int16(binary.BigEndian.Uint16(b[4:])),
		version: int16(binary.BigEndian.Uint16(b[6:])),
		corr:    int32(binary.BigEndian.Uint32(b[8:])),
	}
	if fr.key == keyProduce {
		err = f.lookInto(&fr)
	}
	return fr, err
}

// take consumes the frame that peek described and returns it with its length prefix. held is charged with it as it
// arrives.
func (f frameReader) take(fr frame, held *charge) ([]byte, error) {
	total := 4 + fr.size
	if !held.take(min(total, firstPart)) {
		return nil, errHeld(fr)
	}
	buf := make([]byte, min(total, firstPart))
	for read := 0; ; {
		n, err := io.ReadFull(f.r, buf[read:])
		read += n
		if err != nil {
			return nil, noEOF(err)
		}
		if read == total {
			return buf, nil
		}
		size := min(total, 2*len(buf))
		if !held.take(size - len(buf)) {
			return nil, errHeld(fr)
		}
		grown := make([]byte, size)
		copy(grown, buf)
		buf = grown
	}
}

// lookInto reads what is needed of a Produce request, in no more of it than the read buffer holds.
func (f frameReader) lookInto(fr *frame) error {
	b, err := f.r.Peek(min(4+fr.size, readBuffer))
	if err != nil {
		return noEOF(err)
	}
	return f.lookIntoBytes(b, fr)
}

// lookIntoBytes reads the same from a frame, or its beginning.
func (f frameReader) lookIntoBytes(b []byte, fr *frame) error {
	reader := kbin.Reader{Src: b[4+minFrame:]}
	skipHeader(&reader, fr.version >= 9)
	var txnID *string
	if fr.version >= 9 {
		txnID = reader.CompactNullableString()
	} else {
		txnID = reader.NullableString()
	}
	fr.noReply = reader.Int16() == 0
	if !reader.Ok() {
		return fmt.Errorf("%w: Produce header with client id and transactional id is longer than %d bytes", errFrame, len(b))
	}
	reader.Int32() // time-out
	f.readTopics(&reader, txnID != nil, fr)
	return nil
}

// skipHeader reads the part of a request header that follows the correlation id and returns the client id.
func skipHeader(reader *kbin.Reader, flexible bool) (clientID string) {
	if id := reader.NullableString(); id != nil {
		clientID = *id
	}
	if flexible {
		kmsg.SkipTags(reader)
	}
	return clientID
}

// parse decodes a whole frame, length prefix included. The request keeps slices of raw.
func parse(fr frame, raw []byte) (req kmsg.Request, clientID string, err error) {
	req = kmsg.RequestForKey(fr.key)
	if req == nil {
		return nil, "", fmt.Errorf("%w: unknown request key %d", errFrame, fr.key)
	}
	req.SetVersion(fr.version)
	reader := kbin.Reader{Src: raw[4+minFrame:]}
	clientID = skipHeader(&reader, req.IsFlexible())
	if !reader.Ok() {
		return nil, "", fmt.Errorf("%w: header of %s v%d", errFrame, kmsg.NameForKey(fr.key), fr.version)
	}
	if err := req.ReadFrom(reader.Src); err != nil {
		return nil, "", fmt.Errorf("%w: body of %s v%d: %w", errFrame, kmsg.NameForKey(fr.key), fr.version, err)
	}
	return req, clientID, nil
}

// appendResponse appends the frame of a response.
func appendResponse(dst []byte, corr int32, resp kmsg.Response) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(corr))
	// ApiVersions keeps the old response header in every version: its reader does not know yet what we speak.
	if resp.IsFlexible() && resp.Key() != keyAPIVersions {
		dst = append(dst, 0)
	}
	dst = resp.AppendTo(dst)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
