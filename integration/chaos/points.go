package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// pointHandler is a log handler that sees the points which threads log before they go on. It tells them to the
// parent, and ends the process when the one it waits for is reached.
type pointHandler struct {
	slog.Handler
	to   io.Writer
	kill kill
	die  func(kill)

	mu      sync.Mutex
	reached int
}

// Enabled makes the threads log their points.
func (h *pointHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle takes points out and passes on what the ordinary handler would log.
func (h *pointHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "point" {
		h.point(r)
		return nil
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h *pointHandler) point(r slog.Record) {
	thread, at := "-", ""
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "thread":
			thread = a.Value.String()
		case "at":
			at = a.Value.String()
		}
		return true
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(h.to, "%s %s\n", thread, at)
	if at != h.kill.point {
		return
	}
	if h.reached++; h.reached == h.kill.nth {
		fmt.Fprintf(h.to, "%s %s %s\n", thread, at, hit)
		h.die(h.kill)
	}
}

// hit marks the point that the process dies of.
const hit = "hit"

// trace is what a parent knows about the points of one process: the last of each thread.
type trace struct {
	done chan struct{}
	mu   sync.Mutex
	last map[string]string
	aim  string // the point that was hit
	cut  string // see start

	serving chan struct{} // closed when a cluster serves
}

// watchPoints reads the points from the process' pipe until its end, which is the process'.
func watchPoints(r io.ReadCloser) *trace {
	t := &trace{done: make(chan struct{}), serving: make(chan struct{}), last: map[string]string{}}
	go func() {
		defer close(t.done)
		defer r.Close()
		for lines := bufio.NewScanner(r); lines.Scan(); {
			t.line(lines.Text())
		}
	}()
	return t
}

func (t *trace) line(text string) {
	if cut, ok := strings.CutPrefix(text, serving+"\t"); ok {
		t.mu.Lock()
		t.cut = cut
		t.mu.Unlock()
		close(t.serving)
		return
	}
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last[fields[0]] = fields[1]
	if len(fields) == 3 && fields[2] == hit {
		t.aim = fields[1]
	}
}

// start says what the death before a cluster's start has cut, if it came to serve.
func (t *trace) start() (cut string, served bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cut, t.cut != ""
}

// class says what a death interrupted: what was aimed at, or for a timed one whether a thread was in a transaction.
func (t *trace) class() string {
	<-t.done
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.aim != "" {
		return classOf(t.aim)
	}
	for _, at := range t.last {
		if classOf(at) == inTransaction {
			return inTransaction
		}
	}
	return elsewhere
}
