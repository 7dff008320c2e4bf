package gen

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// The hashes were computed from what the Java peer's load wrote to a broker: SHA-256 over key and value of
// the first 1,000 records, seed 42.
func TestSameBytesAsThePeer(t *testing.T) {
	const seed = 42
	uniform, zipf := NewPicker(1000, false), NewPicker(1000, true)
	vocabulary := Vocabulary(seed, 1000)
	for _, c := range []struct {
		name, sum string
		record    func(dst []byte, n uint64) []byte
	}{
		{"keyed", "69aa2f29a664484023add968d80b9b799002d4eb88d72d700ed504ec2922514a", func(dst []byte, n uint64) []byte {
			return AppendValue(AppendKey(dst, uniform.Pick(Draw(seed, n))), seed, n, 100)
		}},
		{"lines", "6e7d82cd6630c03353ed1255c4367074a5edc506a4e4ae9739c7cb2b2b55a30a", func(dst []byte, n uint64) []byte {
			return AppendLine(dst, seed, n, 10, zipf, vocabulary)
		}},
		{"unkeyed 1 KiB", "57e6eae80ea68b628845f820257b62210237defbb94a5aba5fd1a3bb01b36d18", func(dst []byte, n uint64) []byte {
			return AppendValue(dst, seed, n, 1024)
		}},
	} {
		h := sha256.New()
		var buf []byte
		for n := range uint64(1000) {
			buf = c.record(buf[:0], n)
			h.Write(buf)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != c.sum {
			t.Errorf("%s: SHA-256 %s, the peer has %s", c.name, got, c.sum)
		}
	}
}

func TestZipfPrefersLowRanks(t *testing.T) {
	p := NewPicker(100, true)
	counts := make([]int, 100)
	for n := range uint64(100_000) {
		counts[p.Pick(Draw(7, n))]++
	}
	// the first rank has twice the share of the second and ten times that of the tenth
	if first := float64(counts[0]); first < 1.8*float64(counts[1]) || first < 8*float64(counts[9]) {
		t.Errorf("counts of ranks 1, 2, 10: %d %d %d", counts[0], counts[1], counts[9])
	}
}
