package cluster

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

var (
	gzips = sync.Pool{New: func() any { return new(gzip.Reader) }}
	lz4s  = sync.Pool{New: func() any { return lz4.NewReader(nil) }}
	zstds = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxUncompressed))
		if err != nil {
			panic(err) // the options are constants
		}
		return d
	}}
)

// unpacking bounds how many batches are unpacked at a time: each may need as much memory as maxUncompressed.
var unpacking = make(chan struct{}, 4)

// unpack returns the records of a batch as they were before compression.
func (w *walker) unpack(codec uint16, packed []byte) (io.Reader, error) {
	w.packed.Reset(packed)
	switch codec {
	case 1:
		r := gzips.Get().(*gzip.Reader)
		w.close = func() { gzips.Put(r) }
		return r, r.Reset(&w.packed)
	case 2:
		return w.unsnap(packed)
	case 3:
		r := lz4s.Get().(*lz4.Reader)
		w.close = func() { lz4s.Put(r) }
		r.Reset(&w.packed)
		return r, nil
	case 4:
		r := zstds.Get().(*zstd.Decoder)
		w.close = func() {
			_ = r.Reset(nil) // lets go of the batch; a reader of nothing is no error
			zstds.Put(r)
		}
		return r, r.Reset(&w.packed)
	}
	return nil, fmt.Errorf("compression type %d", codec)
}

// xerial begins what Java clients write: chunks of snappy with their lengths, behind two version numbers.
var xerial = []byte("\x82SNAPPY\x00")

const xerialHeader = 16

// unsnap reads either of the two forms of snappy.
func (w *walker) unsnap(packed []byte) (io.Reader, error) {
	w.chunks = chunks{packed: packed, framed: len(packed) > xerialHeader && bytes.HasPrefix(packed, xerial), room: maxUncompressed, memory: w.chunks.memory}
	if w.chunks.framed {
		w.chunks.packed = packed[xerialHeader:]
	}
	return &w.chunks, nil
}

// chunks unpacks blocks of snappy: one without a frame, or one after the other.
type chunks struct {
	packed []byte
	framed bool
	block  []byte // unpacked and not read
	room   int
	memory []byte // of the block
}

func (c *chunks) Read(p []byte) (int, error) {
	for len(c.block) == 0 {
		if len(c.packed) == 0 {
			return 0, io.EOF
		}
		packed, err := c.next()
		if err != nil {
			return 0, err
		}
		if err := c.unpack(packed); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.block)
	c.block = c.block[n:]
	return n, nil
}

// next cuts off a block.
func (c *chunks) next() (packed []byte, err error) {
	packed, c.packed = c.packed, nil
	if !c.framed {
		return packed, nil
	}
	if len(packed) < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	size := int(int32(binary.BigEndian.Uint32(packed)))
	if size < 0 || size > len(packed)-4 {
		return nil, io.ErrUnexpectedEOF
	}
	c.packed = packed[4+size:]
	return packed[4 : 4+size], nil
}

func (c *chunks) unpack(packed []byte) error {
	n, err := s2.DecodedLen(packed)
	switch {
	case err != nil:
		return err
	case n > c.room:
		return fmt.Errorf("records unpack to more than %d MiB", maxUncompressed>>20)
	}
	if c.block, err = s2.Decode(c.memory[:cap(c.memory)], packed); err != nil {
		return err
	}
	c.room -= n
	if cap(c.block) <= 1<<20 { // what is kept for the next batch
		c.memory = c.block
	}
	return nil
}
