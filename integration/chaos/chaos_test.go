package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-io/millrace/integration/check"
)

func TestPlanHasItsShareOfEveryClass(t *testing.T) {
	shares := map[string]int{}
	wiped := 0
	for _, k := range plan(rand.New(rand.NewPCG(1, 1)), 100) {
		class := "timed"
		if k.point != "" {
			class = classOf(k.point)
			if k.nth < 1 {
				t.Errorf("%v can never be hit", k)
			}
		}
		shares[class]++
		if k.wipe {
			wiped++
		}
	}
	if shares[inRestore] < 15 || shares[inFlush] < 15 || shares[inTransaction] < 20 || shares[afterCommit] < 10 || shares["timed"] < 30 || wiped < 5 {
		t.Errorf("shares %v, %d wiped", shares, wiped)
	}
}

func TestPlanIsAFunctionOfTheSeed(t *testing.T) {
	list := func(seed uint64) string { return fmt.Sprint(plan(rand.New(rand.NewPCG(seed, 1)), 50)) }
	if list(5) != list(5) || list(5) == list(6) {
		t.Error("the plan does not follow from the seed")
	}
}

func TestPointsReachTheParent(t *testing.T) {
	var pipe bytes.Buffer
	var logs strings.Builder
	log := slog.New(&pointHandler{Handler: slog.NewTextHandler(&logs, nil), to: &pipe})
	log.Debug("point", "thread", "T-1", "at", "C0")
	log.Debug("point", "thread", "T-2", "at", "C6")
	log.Info("ordinary")
	log.Debug("hidden")
	seen := watchPoints(io.NopCloser(&pipe))
	if class := seen.class(); class != inTransaction {
		t.Errorf("a thread is at C0, and the class is %q", class)
	}
	if seen.last["T-2"] != "C6" || !strings.Contains(logs.String(), "ordinary") || strings.Contains(logs.String(), "hidden") {
		t.Errorf("last points %v, log %q", seen.last, logs.String())
	}
}

// The class of an aimed kill is that of the point, wherever the other threads were.
func TestHitPointDecidesTheClass(t *testing.T) {
	pipe := strings.NewReader("T-1 C2\nT-2 C5\nT-2 C5 hit\nT-1 C4\n")
	if class := watchPoints(io.NopCloser(pipe)).class(); class != afterCommit {
		t.Errorf("class %q", class)
	}
}

func TestNthPointIsTheOneHit(t *testing.T) {
	var pipe bytes.Buffer
	h := &pointHandler{Handler: slog.DiscardHandler, to: &pipe, kill: kill{point: "C4", nth: 2}, die: func(kill) {}}
	for range 2 {
		if strings.Contains(pipe.String(), hit) {
			t.Fatal("hit too early")
		}
		slog.New(h).DebugContext(context.Background(), "point", "thread", "T-1", "at", "C4")
	}
	if !strings.Contains(pipe.String(), "T-1 C4 "+hit) {
		t.Errorf("the pipe has %q", pipe.String())
	}
}

// What the whole comparison rests on: the replay of the input accepts itself, and nothing that lacks a word.
func TestWantedIsEveryWordInItsPartition(t *testing.T) {
	f := newFeed(nil, 3)
	words := f.wanted(500)
	if words.Len() != 500*lineWords {
		t.Fatalf("%d words", words.Len())
	}
	short := f.wanted(499)
	if err := check.AsMultiset(repartition, words, f.wanted(500)); err != nil {
		t.Error(err)
	}
	if check.AsMultiset(repartition, short, words) == nil {
		t.Error("a lost line was not noticed")
	}
}
