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
	trustedFrame = 64 << 10

	// readBuffer bounds how far into a frame the listener looks before it decides where the frame goes. Only a Fetch
	// request is looked into beyond its fixed header (see capFetch), so only there must the client id fit.
	readBuffer = 16 << 10

	// maxFetch is Kafka's default of fetch.max.bytes, which bounds what a Fetch request may ask for.
	maxFetch = 55 << 20
)

// Keys that the listener treats differently from the rest.
const (
	keyProduce                 = 0
	keyFetch                   = 1
	keyOffsetCommit            = 8
	keyOffsetFetch             = 9
	keyJoinGroup               = 11
	keyHeartbeat               = 12
	keyLeaveGroup              = 13
	keySyncGroup               = 14
	keyDescribeGroups          = 15
	keyListGroups              = 16
	keySASLHandshake           = 17
	keyAPIVersions             = 18
	keyCreateTopics            = 19
	keyDeleteTopics            = 20
	keyDeleteRecords           = 21
	keyInitProducerID          = 22
	keyAddPartitions           = 24
	keyAddOffsets              = 25
	keyEndTxn                  = 26
	keyTxnOffsetCommit         = 28
	keyDescribeACLs            = 29
	keyCreateACLs              = 30
	keyDeleteACLs              = 31
	keyDescribeConfigs         = 32
	keyAlterConfigs            = 33
	keySASLAuthenticate        = 36
	keyCreatePartitions        = 37
	keyDeleteGroups            = 42
	keyElectLeaders            = 43
	keyIncrementalAlterConfigs = 44
	keyOffsetDelete            = 47
)

var errFrame = errors.New("malformed frame")

// A frame is what the listener knows of a request before it has read its body.
type frame struct {
	size    int // bytes after the length prefix
	key     int16
	version int16
	corr    int32

	noReply bool // a Produce request with acks=0, the only request that gets no answer; known when all of it is here
}

// A frameReader cuts a byte stream into frames and trusts none of their lengths.
type frameReader struct{ r *bufio.Reader }

func newFrameReader(r io.Reader) frameReader {
	return frameReader{bufio.NewReaderSize(r, readBuffer)}
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
	return fr, nil
}

// take consumes the frame that peek described and returns it with its length prefix. charge is asked for what it takes
// as it arrives.
func (f frameReader) take(fr frame, charge func(n int) bool) ([]byte, error) {
	total := 4 + fr.size
	if !charge(min(total, trustedFrame)) {
		return nil, errHeld(fr)
	}
	buf := make([]byte, min(total, trustedFrame))
	for read := 0; ; {
		n, err := io.ReadFull(f.r, buf[read:])
		read += n
		if err != nil {
			return nil, noEOF(err)
		}
		if read == total {
			return buf, nil
		}
		size := min(total, 4*len(buf))
		if !charge(size - len(buf)) {
			return nil, errHeld(fr)
		}
		grown := make([]byte, size)
		copy(grown, buf)
		buf = grown
	}
}

// capFetch lowers what a Fetch request asks for to what a broker returns at most, and its wait to what a connection may
// idle: kfake would build a response of any size, and keep a request for as long as it says, even when its client has
// gone. The request is changed where it lies, in the read buffer.
func (f frameReader) capFetch(fr frame) error {
	b, err := f.r.Peek(min(4+fr.size, readBuffer))
	if err != nil {
		return noEOF(err)
	}
	reader := kbin.Reader{Src: b[4+minFrame:]}
	skipHeader(&reader, fr.version >= 12)
	if fr.version < 15 {
		reader.Int32() // replica id
	}
	wait := reader.Span(4)
	reader.Int32() // fewest bytes
	maxBytes := reader.Span(4)
	if !reader.Ok() {
		return fmt.Errorf("%w: header and size of a Fetch request are longer than %d bytes", errFrame, len(b))
	}
	lower(wait, int32(idleTimeout.Milliseconds()))
	lower(maxBytes, maxFetch)
	return nil
}

// lower makes an encoded number most if it is more.
func lower(number []byte, most int32) {
	if int32(binary.BigEndian.Uint32(number)) > most {
		binary.BigEndian.PutUint32(number, uint32(most))
	}
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
