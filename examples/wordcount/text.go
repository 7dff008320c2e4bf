package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

const (
	// maxLine bounds a record. Longer lines are cut between words: Kafka refuses records above 1 MiB by default,
	// and a line of 50 MB must not be held in memory.
	maxLine = 64 << 10
	// sniffed is how much of a file is looked at for a NUL byte, which no text has.
	sniffed = 8 << 10
)

// errBinary is the answer to a file that is no text.
var errBinary = errors.New("binary file (it has a NUL byte)")

// A textReport says what was noticed while a text was read.
type textReport struct {
	bytes, lines int64
	cut          int64 // pieces that a line was cut into because it is too long
	invalid      int64 // bytes that are no UTF-8
	firstInvalid int64 // offset of the first of them
}

// String tells what a user should know, or is empty.
func (r textReport) String() string {
	var b bytes.Buffer
	note := func(format string, args ...any) {
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, format, args...)
	}
	if r.bytes == 0 {
		note("is empty")
	}
	if r.invalid > 0 {
		note("is not UTF-8: %d bytes are skipped, the first at offset %d", r.invalid, r.firstInvalid)
	}
	if r.cut > 0 {
		note("has lines above %d KiB: they are cut between words into %d more records", maxLine>>10, r.cut)
	}
	return b.String()
}

// readText calls yield for each line of a text, without its end. A line that is too long comes in pieces; bytes
// that are no UTF-8 become spaces. The slice is valid during the call only.
func readText(from io.Reader, yield func(line []byte) error) (textReport, error) {
	var report textReport
	r := bufio.NewReaderSize(from, sniffed)
	head, err := r.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return report, err
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return report, errBinary
	}
	pieces := bufio.NewScanner(r)
	pieces.Buffer(nil, 2*maxLine)
	pieces.Split(report.split)
	for pieces.Scan() {
		piece := pieces.Bytes()
		report.blankInvalid(piece)
		report.bytes += int64(len(piece))
		if piece[len(piece)-1] == '\n' {
			report.lines++
		}
		if err := yield(bytes.TrimRight(piece, "\r\n")); err != nil {
			return report, err
		}
	}
	return report, pieces.Err()
}

// split is a bufio.SplitFunc: lines with their ends, in pieces of at most maxLine bytes. The pieces add up to the
// text, so that offsets stay true.
func (r *textReport) split(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data[:min(len(data), maxLine)], '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	switch {
	case len(data) > maxLine:
		n := cutAt(data[:maxLine])
		r.cut++
		return n, data[:n], nil
	case atEOF && len(data) > 0:
		return len(data), data, nil
	default:
		return 0, nil, nil
	}
}

// cutAt is where to cut a piece of a long line: after the last space in its second half, or, where there is
// none, after the last whole character.
func cutAt(piece []byte) int {
	if i := bytes.LastIndexAny(piece[len(piece)/2+1:], " \t\r"); i >= 0 {
		return len(piece)/2 + 1 + i + 1
	}
	for back := 1; back < utf8.UTFMax; back++ {
		if tail := piece[len(piece)-back:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return len(piece) - back
			}
			break
		}
	}
	return len(piece)
}

// blankInvalid overwrites what is no UTF-8 with spaces, in place, and notes it.
func (r *textReport) blankInvalid(piece []byte) {
	if utf8.Valid(piece) {
		return
	}
	for at := 0; at < len(piece); {
		c, size := utf8.DecodeRune(piece[at:])
		if c == utf8.RuneError && size == 1 {
			if r.invalid == 0 {
				r.firstInvalid = r.bytes + int64(at)
			}
			r.invalid++
			piece[at] = ' '
		}
		at += size
	}
}
