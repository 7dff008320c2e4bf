// Package gen makes the deterministic input of benchmarks, demo and crash tests.
//
// Every record is a pure function of (seed, n), so any slice of the input can be made again without the
// rest, and a check needs no stored copy: it replays. The bytes are the same as those of the Java peer
// beside it (Peer.java, workload load), which a test holds by hash.
package gen

import (
	"encoding/binary"
	"sort"
)

// golden is the increment of SplitMix64.
const golden = 0x9E3779B97F4A7C15

// mix is the finaliser of SplitMix64.
func mix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

// Draw is number n of the random stream seed.
func Draw(seed, n uint64) uint64 { return mix(seed + (n+1)*golden) }

// unit maps 64 random bits to [0, 1).
func unit(bits uint64) float64 { return float64(bits>>11) * 0x1p-53 }

// AppendKey appends key number index: 'k' and 15 decimal digits.
func AppendKey(dst []byte, index uint64) []byte {
	dst = append(dst, "k000000000000000"...)
	for p := len(dst) - 1; index > 0; p-- {
		dst[p] = byte('0' + index%10)
		index /= 10
	}
	return dst
}

// AppendValue appends value number n: the number itself in 8 bytes, then incompressible filler, in all size
// bytes (at least 16).
func AppendValue(dst []byte, seed, n uint64, size int) []byte {
	size = max(size, 16)
	dst = binary.BigEndian.AppendUint64(dst, n)
	left := size - 8
	for word := uint64(0); left >= 8; word++ {
		dst = binary.BigEndian.AppendUint64(dst, Draw(seed^n*golden, word))
		left -= 8
	}
	return append(dst, make([]byte, left)...)
}

// Picker chooses an index below n: uniformly, or by Zipf's law with exponent 1. Its methods only read: it
// may be shared.
type Picker struct {
	n          uint64
	cumulative []float64
}

// NewPicker makes a picker of n indices. The sums of 1/rank are taken in rank order, so that Java and Go get
// the same doubles.
func NewPicker(n uint64, zipf bool) *Picker {
	p := &Picker{n: n}
	if zipf {
		p.cumulative = make([]float64, n)
		sum := 0.0
		for r := range p.cumulative {
			sum += 1.0 / float64(r+1)
			p.cumulative[r] = sum
		}
	}
	return p
}

// Pick maps 64 random bits to an index.
func (p *Picker) Pick(bits uint64) uint64 {
	u := unit(bits)
	if p.cumulative == nil {
		return uint64(u * float64(p.n))
	}
	last := len(p.cumulative) - 1
	x := u * p.cumulative[last]
	return uint64(sort.Search(last, func(i int) bool { return p.cumulative[i] > x }))
}

// Word is word number w: 3 to 10 letters drawn from it, then w itself in base 26, so that words differ.
func Word(seed, w uint64) []byte {
	bits := Draw(seed^0x5EED, w)
	letters := 3 + int(unit(bits)*8)
	out := make([]byte, 0, letters+4)
	for ; letters > 0; letters-- {
		out = append(out, byte('a'+bits%26))
		bits /= 26
	}
	for {
		out = append(out, byte('a'+w%26))
		if w /= 26; w == 0 {
			return out
		}
	}
}

// Vocabulary is the first n words.
func Vocabulary(seed uint64, n int) [][]byte {
	words := make([][]byte, n)
	for w := range words {
		words[w] = Word(seed, uint64(w))
	}
	return words
}

// AppendLine appends line number n: so many words, picked from the vocabulary, with single spaces between.
func AppendLine(dst []byte, seed, n uint64, words int, p *Picker, vocabulary [][]byte) []byte {
	for w := range words {
		if w > 0 {
			dst = append(dst, ' ')
		}
		dst = append(dst, vocabulary[p.Pick(Draw(seed, n*uint64(words)+uint64(w)))]...)
	}
	return dst
}
