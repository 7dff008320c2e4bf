package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func readAll(t *testing.T, from io.Reader) (pieces []string, report textReport) {
	t.Helper()
	report, err := readText(from, func(line []byte) error {
		pieces = append(pieces, string(line))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pieces, report
}

func TestReadTextGivesLinesWithoutTheirEnds(t *testing.T) {
	pieces, report := readAll(t, iotest.OneByteReader(strings.NewReader("one two\r\n\nthree\nlast")))
	if got := strings.Join(pieces, "|"); got != "one two||three|last" {
		t.Errorf("lines %q", got)
	}
	if s := report.String(); s != "" {
		t.Errorf("a plain text was reported: %s", s)
	}
}

func TestReadTextSaysThatAFileIsEmpty(t *testing.T) {
	pieces, report := readAll(t, strings.NewReader(""))
	if len(pieces) != 0 || !strings.Contains(report.String(), "empty") {
		t.Errorf("%d lines, %q", len(pieces), report)
	}
}

func TestReadTextRefusesBinaries(t *testing.T) {
	_, err := readText(strings.NewReader("\x7fELF\x00\x01"), func([]byte) error { return nil })
	if !errors.Is(err, errBinary) {
		t.Errorf("got %v", err)
	}
}

func TestReadTextBlanksWhatIsNoUTF8AndSaysWhere(t *testing.T) {
	pieces, report := readAll(t, strings.NewReader("gr\u00fcn\nna\xefve \xff\n"))
	if pieces[0] != "gr\u00fcn" || pieces[1] != "na ve  " {
		t.Errorf("lines %q", pieces)
	}
	if report.invalid != 2 || report.firstInvalid != 8 || !strings.Contains(report.String(), "2 bytes are skipped, the first at offset 8") {
		t.Errorf("report %q", report)
	}
}

// A line of 50 MB: bounded pieces, nothing lost, no word cut in two.
func TestReadTextCutsLongLinesBetweenWords(t *testing.T) {
	const words = 10 << 20
	longest, seen := 0, 0
	report, err := readText(io.LimitReader(&endless{word: "four "}, 5*words), func(piece []byte) error {
		longest = max(longest, len(piece))
		for word := range bytes.FieldsSeq(piece) {
			if string(word) != "four" {
				t.Fatalf("a word was cut: %q", word)
			}
			seen++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if longest > maxLine || seen != words || report.cut == 0 || !strings.Contains(report.String(), "cut between words") {
		t.Errorf("longest piece %d, words %d, report %q", longest, seen, report)
	}
}

// Without any space a cut must not fall into a character.
func TestReadTextCutsBetweenCharacters(t *testing.T) {
	text := strings.Repeat("\u20ac", maxLine) // three bytes each
	pieces, report := readAll(t, strings.NewReader(text))
	if strings.Join(pieces, "") != text || report.invalid != 0 || len(pieces) < 3 {
		t.Errorf("%d pieces, %d invalid bytes", len(pieces), report.invalid)
	}
}

func TestReadTextPassesErrorsOn(t *testing.T) {
	boom := errors.New("boom")
	if _, err := readText(iotest.ErrReader(boom), func([]byte) error { return nil }); !errors.Is(err, boom) {
		t.Errorf("a failing file: %v", err)
	}
	if _, err := readText(strings.NewReader("a\n"), func([]byte) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("a failing consumer: %v", err)
	}
}

// endless repeats a word for ever.
type endless struct {
	word string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.word[e.at%len(e.word)]
		e.at++
	}
	return len(p), nil
}

func FuzzReadText(f *testing.F) {
	f.Add([]byte("a b\nc"), 3)
	f.Add([]byte("\xe2\x82\xac\xe2\x82"), 40000)
	f.Fuzz(func(t *testing.T, text []byte, repeat int) {
		text = bytes.Repeat(text, 1+abs(repeat)%(2*maxLine/(len(text)+1)+1))
		total := 0
		report, err := readText(bytes.NewReader(text), func(piece []byte) error {
			if len(piece) > maxLine {
				t.Fatalf("a piece of %d bytes", len(piece))
			}
			total += len(piece)
			return nil
		})
		if err == nil && (report.bytes != int64(len(text)) || total > len(text)) {
			t.Fatalf("read %d of %d bytes", report.bytes, len(text))
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return max(0, -n)
	}
	return n
}

func TestShortened(t *testing.T) {
	for word, want := range map[string]string{
		"word":                    "word",
		strings.Repeat("ä", 60):   strings.Repeat("ä", 60),
		strings.Repeat("ä", 1000): strings.Repeat("ä", 60) + "…",
	} {
		if got := shortened(word); got != want {
			t.Errorf("%.70s became %s", word, got)
		}
	}
}
