package main

import (
	"strings"
	"unicode"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
)

const (
	linesTopic  = "lines"
	countsTopic = "counts"
	store       = "word-counts"
)

// topology is the word count: lines come in without key, words go out with their count so far.
func topology() *streams.Builder {
	b := streams.NewBuilder()
	b.Stream(linesTopic, serde.Bytes, serde.String).
		FlatMapValues(words).
		GroupBy(func(_ []byte, word string) string { return word }, serde.String).
		Count(store).
		ToStream().
		To(countsTopic, serde.String, serde.Int64)
	return b
}

// words splits a line: a word is a run of letters, digits and marks (as in a decomposed é), apostrophes inside
// included, in lower case, so that "Don't" and "don't," count as one.
func words(line string) []string {
	found := strings.FieldsFunc(strings.ToLower(line), notInWord)
	kept := found[:0]
	for _, word := range found {
		if word = strings.Trim(word, "'"); word != "" {
			kept = append(kept, word)
		}
	}
	return kept
}

func notInWord(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.IsMark(c) && c != '\''
}
