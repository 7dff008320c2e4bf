package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-io/millrace/internal/taskid"
)

// Version is the version that this package writes; MinVersion is the lowest version a reader of its bytes needs.
const (
	Version    = 1
	MinVersion = 1
)

// The header: magic, kind, version, minimum version.
const (
	magic0, magic1 = 'm', 'r'
	headerLen      = 2 + 1 + 2 + 2
)

type kind byte

const (
	kindSubscription kind = 's'
	kindAssignment   kind = 'a'
)

// VersionError says that the bytes need a newer reader. During a rolling upgrade the member that meets it is the old
// one; upgrading it is the remedy.
type VersionError struct {
	Version, MinVersion int // of the writer
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("group user data of version %d needs a reader of version %d or newer, this one is version %d: upgrade this process", e.Version, e.MinVersion, Version)
}

var (
	errForeign   = errors.New("group user data was not written by this library: do other applications use the same group id?")
	errTruncated = errors.New("group user data is cut short")
	errOrder     = errors.New("group user data is corrupt: field tags do not ascend")
)

func appendHeader(dst []byte, k kind) []byte {
	dst = append(dst, magic0, magic1, byte(k))
	dst = binary.BigEndian.AppendUint16(dst, Version)
	return binary.BigEndian.AppendUint16(dst, MinVersion)
}

// readHeader returns the writer's version and the fields.
func readHeader(src []byte, k kind) (version int, fields []byte, err error) {
	if len(src) < headerLen || src[0] != magic0 || src[1] != magic1 || src[2] != byte(k) {
		return 0, nil, errForeign
	}
	version = int(binary.BigEndian.Uint16(src[3:]))
	minimum := int(binary.BigEndian.Uint16(src[5:]))
	if version < 1 || minimum > version {
		return 0, nil, errForeign
	}
	if minimum > Version {
		return 0, nil, &VersionError{Version: version, MinVersion: minimum}
	}
	return version, src[headerLen:], nil
}

// appendField appends one field, unless its content is empty.
func appendField(dst []byte, tag uint64, content []byte) []byte {
	if len(content) == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(content)))
	return append(dst, content...)
}

// eachField calls fn for every field in order. Tags must ascend, so that no field can come twice.
func eachField(fields []byte, fn func(tag uint64, content *reader)) error {
	r := reader{buf: fields}
	last := uint64(0)
	for len(r.buf) > 0 && r.err == nil {
		tag := r.uvarint()
		content := reader{buf: r.bytes()}
		if r.err != nil {
			break
		}
		if tag <= last {
			return errOrder
		}
		last = tag
		fn(tag, &content)
		if content.err != nil {
			return fmt.Errorf("field %d: %w", tag, content.err)
		}
	}
	return r.err
}

// A reader takes values off its buffer. After the first error every further value is zero.
type reader struct {
	buf []byte
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.buf = nil
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.buf)
	if n <= 0 {
		r.fail(errTruncated)
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.buf)
	if n <= 0 {
		r.fail(errTruncated)
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *reader) fixed64() uint64 {
	if len(r.buf) < 8 {
		r.fail(errTruncated)
		return 0
	}
	v := binary.BigEndian.Uint64(r.buf)
	r.buf = r.buf[8:]
	return v
}

// bytes takes a length and that many bytes; the result aliases the buffer.
func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.buf)) {
		r.fail(errTruncated)
		return nil
	}
	v := r.buf[:n]
	r.buf = r.buf[n:]
	return v
}

func (r *reader) string() string { return string(r.bytes()) }

// count takes the number of elements of a list, each at least size bytes long, so that a lying count cannot make
// the reader allocate more than the input is worth.
func (r *reader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.buf)/size) {
		r.fail(errTruncated)
		return 0
	}
	return int(n)
}

// rest takes what is left as a string.
func (r *reader) rest() string {
	s := string(r.buf)
	r.buf = nil
	return s
}

func appendString(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// appendTasks writes task ids as runs of one sub-topology, each with its partitions: names are long and repeat.
func appendTasks(dst []byte, ids []taskid.ID) []byte {
	for len(ids) > 0 {
		sub := ids[0].Subtopology
		run := slices.IndexFunc(ids, func(id taskid.ID) bool { return id.Subtopology != sub })
		if run < 0 {
			run = len(ids)
		}
		dst = appendString(dst, sub)
		dst = binary.AppendUvarint(dst, uint64(run))
		for _, id := range ids[:run] {
			dst = binary.AppendVarint(dst, int64(id.Partition))
		}
		ids = ids[run:]
	}
	return dst
}

// tasks takes every task id that is left.
func (r *reader) tasks() []taskid.ID {
	var ids []taskid.ID
	for len(r.buf) > 0 {
		sub := r.string()
		for range r.count(1) {
			ids = append(ids, taskid.ID{Subtopology: sub, Partition: r.int32()})
		}
	}
	return ids
}

func (r *reader) int32() int32 {
	v := r.varint()
	if int64(int32(v)) != v {
		r.fail(fmt.Errorf("group user data is corrupt: %d does not fit 32 bits", v))
		return 0
	}
	return int32(v)
}
