package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// lockedBuffer is written to from several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestWordCountCountsFilesOnceAndEnds(t *testing.T) {
	for _, guarantee := range []string{"-eos=false", "-eos=true"} {
		t.Run(guarantee, func(t *testing.T) {
			dir := t.TempDir()
			a := write(t, dir, "a.txt", "The quick brown fox.\nThe lazy dog, the end\n")
			b := write(t, dir, "b.txt", strings.Repeat("fox don't Don't\n", 500))
			var out, logs lockedBuffer
			if err := run(t.Context(), []string{"-once", "-rest", "127.0.0.1:0", "-top", "4", guarantee, a, b}, &out, &logs); err != nil {
				t.Fatalf("%v\n%s", err, logs.String())
			}
			_, table, _ := strings.Cut(out.String(), "most frequent:\n")
			want := []string{"1000 don't", "501 fox", "3 the", "1 brown"}
			for i, line := range strings.Split(strings.TrimRight(table, "\n"), "\n") {
				if got := strings.Join(strings.Fields(line), " "); i >= len(want) || got != want[i] {
					t.Errorf("line %d of the table is %q, want %v", i+1, got, want)
				}
			}
			if !strings.Contains(out.String(), "1509 words, 8 different") {
				t.Errorf("output:\n%s", out.String())
			}
		})
	}
}

// Bad files are named one by one; what is good is counted all the same.
func TestWordCountNamesBadFilesAndCountsTheOthers(t *testing.T) {
	dir := t.TempDir()
	good := write(t, dir, "good.txt", "one two two\n")
	args := []string{"-once", "-rest", "127.0.0.1:0", filepath.Join(dir, "missing.txt"), dir,
		write(t, dir, "binary.bin", "\x00\x01\x02"), write(t, dir, "empty.txt", ""), write(t, dir, "latin1.txt", "caf\xe9 two\n"), good}
	var out, logs lockedBuffer
	err := run(t.Context(), args, &out, &logs)
	if !errors.Is(err, errUnread) {
		t.Errorf("run: %v, want %v", err, errUnread)
	}
	for _, want := range []string{
		"missing.txt is left out: there is no such file",
		"is left out: it is a directory",
		"binary.bin is left out: binary file",
		"empty.txt is empty",
		"latin1.txt is not UTF-8: 1 bytes are skipped, the first at offset 3",
	} {
		if !strings.Contains(logs.String(), want) {
			t.Errorf("no %q in\n%s", want, logs.String())
		}
	}
	if !strings.Contains(out.String(), "3  two") {
		t.Errorf("output:\n%s", out.String())
	}
}

// Without -once it goes on after the table until it is told to stop, and that is no failure.
func TestWordCountGoesOnUntilInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	logs := &tripwire{text: "waiting for more lines", trip: interrupt}
	if err := run(ctx, []string{"-rest", "127.0.0.1:0", write(t, t.TempDir(), "a", "a b\n")}, io.Discard, logs); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
	if !logs.tripped() {
		t.Error("it ended before it was interrupted")
	}
}

// tripwire calls trip when it sees a text.
type tripwire struct {
	lockedBuffer
	text string
	trip func()
}

func (w *tripwire) Write(p []byte) (int, error) {
	n, err := w.lockedBuffer.Write(p)
	if w.tripped() {
		w.trip()
	}
	return n, err
}

func (w *tripwire) tripped() bool { return strings.Contains(w.String(), w.text) }

func TestWordCountRejectsWrongArguments(t *testing.T) {
	for _, args := range []string{"-no-such-flag", "-no-input -once", "-no-input file", "-partitions 0", "-threads x"} {
		if err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("%s: %v, want a usage error", args, err)
		}
	}
}

func TestWords(t *testing.T) {
	got := words("\"Don't\" 'quoted' e\u0301te\u0301, 42 -- x_y ''")
	want := []string{"don't", "quoted", "e\u0301te\u0301", "42", "x", "y"}
	if !slices.Equal(got, want) {
		t.Errorf("words %q, want %q", got, want)
	}
}
