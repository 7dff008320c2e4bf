package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
)

// maxUncompressed bounds what the records of one batch may unpack to. kfake unpacks a whole batch in memory when it
// looks for a timestamp; a mebibyte of zeros, which is all that a batch may take, can be a gibibyte of them.
const maxUncompressed = 64 << 20

// checkBatch reports why Kafka would not append what a Produce request has for a partition, or nil. kfake looks no
// further than the header: a count that lies moves its offsets backwards, and a record whose length lies ends the
// process when somebody asks for an offset by timestamp.
func checkBatch(batch []byte) *kerr.Error {
	switch err := walkBatch(batch); {
	case err == nil:
		return nil
	case len(batch) >= batchHeaderSize && wholeBatch(batch) && !intact(batch):
		return kerr.CorruptMessage // nothing in it can be believed
	}
	return kerr.InvalidRecord
}

// wholeBatch reports whether a batch is as long as it says.
func wholeBatch(batch []byte) bool {
	return int(int32(binary.BigEndian.Uint32(batch[batchLengthAt:]))) == len(batch)-batchLengthEnd
}

// intact reports whether a batch has the right checksum.
func intact(batch []byte) bool {
	return binary.BigEndian.Uint32(batch[batchCRCAt:]) == crc32.Checksum(batch[batchAttributesAt:], castagnoli)
}

func walkBatch(batch []byte) error {
	if len(batch) < batchHeaderSize {
		return fmt.Errorf("%d bytes are no batch", len(batch))
	}
	attributes := binary.BigEndian.Uint16(batch[batchAttributesAt:])
	last, count := int32(binary.BigEndian.Uint32(batch[batchDeltaAt:])), int32(binary.BigEndian.Uint32(batch[batchCountAt:]))
	switch {
	case !wholeBatch(batch):
		return fmt.Errorf("length %d, there are %d bytes", binary.BigEndian.Uint32(batch[batchLengthAt:]), len(batch)-batchLengthEnd)
	case batch[batchMagicAt] != 2:
		return fmt.Errorf("message format %d", batch[batchMagicAt])
	case count < 1 || last != count-1:
		return fmt.Errorf("count %d, last offset delta %d", count, last)
	case attributes&attributeControl != 0:
		return errors.New("clients do not write control batches")
	}
	w := walkers.Get().(*walker)
	defer w.release()
	if codec := attributes & attributeCodec; codec != 0 {
		unpacking <- struct{}{}
		defer func() { <-unpacking }()
		records, err := w.unpack(codec, batch[batchHeaderSize:])
		if err != nil {
			return err
		}
		w.more = io.LimitedReader{R: records, N: maxUncompressed}
	} else {
		w.window = batch[batchHeaderSize:]
	}
	return w.records(int(count))
}

// A walker goes through the records of a batch without keeping them.
type walker struct {
	window []byte           // what is at hand
	more   io.LimitedReader // what comes behind it; nothing if R is nil
	buffer []byte           // for more
	left   int              // of the current record

	packed bytes.Reader
	chunks chunks
	close  func()
}

var walkers = sync.Pool{New: func() any { return &walker{buffer: make([]byte, 16<<10)} }}

func (w *walker) release() {
	if w.close != nil {
		w.close()
	}
	*w = walker{buffer: w.buffer, chunks: chunks{memory: w.chunks.memory}}
	walkers.Put(w)
}

// fill gets more into an empty window.
func (w *walker) fill() error {
	switch {
	case w.more.R == nil:
		return io.EOF
	case w.more.N == 0:
		return fmt.Errorf("records unpack to more than %d MiB", maxUncompressed>>20)
	}
	for {
		n, err := w.more.Read(w.buffer)
		w.window = w.buffer[:n]
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

var errRecord = errors.New("a record's fields do not add up to its length")

// records goes through exactly count records, behind which the batch must end.
func (w *walker) records(count int) error {
	for range count {
		w.left = binary.MaxVarintLen64
		length, err := w.varint()
		if err != nil {
			return err
		}
		w.left = length
		if err := w.record(); err != nil {
			return err
		}
		if w.left != 0 {
			return errRecord
		}
	}
	if len(w.window) == 0 {
		switch err := w.fill(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
	return fmt.Errorf("more than %d records", count)
}

func (w *walker) record() error {
	if err := w.skip(1); err != nil { // attributes
		return err
	}
	if _, err := w.varlong(); err != nil { // timestamp delta
		return err
	}
	if _, err := w.varint(); err != nil { // offset delta
		return err
	}
	if err := w.bytes(true); err != nil { // key
		return err
	}
	if err := w.bytes(true); err != nil { // value
		return err
	}
	headers, err := w.varint()
	if err != nil || headers < 0 {
		return errors.Join(errRecord, err)
	}
	for range headers {
		if err := w.bytes(false); err != nil { // key
			return err
		}
		if err := w.bytes(true); err != nil { // value
			return err
		}
	}
	return nil
}

// bytes skips a length and what it announces.
func (w *walker) bytes(nullable bool) error {
	n, err := w.varint()
	switch {
	case err != nil:
		return err
	case n == -1 && nullable:
		return nil
	}
	return w.skip(n)
}

func (w *walker) skip(n int) error {
	if n < 0 || n > w.left {
		return errRecord
	}
	w.left -= n
	for n > len(w.window) {
		n -= len(w.window)
		if err := w.fill(); err != nil {
			return err
		}
	}
	w.window = w.window[n:]
	return nil
}

func (w *walker) varint() (int, error) {
	n, err := w.varlong()
	if err == nil && n != int64(int32(n)) {
		err = errRecord
	}
	return int(n), err
}

// varlong reads a zigzag number of at most ten bytes.
func (w *walker) varlong() (int64, error) {
	var u uint64
	for shift := 0; shift < 70; shift += 7 {
		if len(w.window) == 0 {
			if err := w.fill(); err != nil {
				return 0, err
			}
		}
		b := w.window[0]
		w.window = w.window[1:]
		w.left--
		u |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if w.left < 0 {
				return 0, errRecord
			}
			return int64(u>>1) ^ -int64(u&1), nil
		}
	}
	return 0, errRecord
}
