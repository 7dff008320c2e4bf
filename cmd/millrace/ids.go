package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
)

// splitIDs reads lists of ids that are separated by commas, without repeats.
func splitIDs(lists ...string) []string {
	var ids []string
	for _, list := range lists {
		for id := range strings.SplitSeq(list, ",") {
			if id = strings.TrimSpace(id); id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// readIDs reads ids from a file, - for standard input: one a line, or separated by commas. Blank lines and what follows a #
// do not count. None at all is an error, as a broken pipe must not look like success, and so is what is no list of ids.
func readIDs(name string, stdin io.Reader) ([]string, error) {
	text, err := readAll(name, stdin)
	if err != nil {
		return nil, err
	}
	if name == "-" {
		name = "standard input"
	}
	var ids []string
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line, _, _ = strings.Cut(line, "#")
		for _, id := range splitIDs(line) {
			if strings.ContainsFunc(id, notInID) {
				return nil, fmt.Errorf("%s, line %d: %.60q is not an instance id: want one a line, as millrace instances -o text prints them", name, i+1, id)
			}
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("there are no instance ids in the input: %s has none", name)
	}
	return ids, nil
}

// notInID finds what shows that a file is a table, JSON or no text. Clients other than ours and Java's allow more than
// letters, digits, '.', '_' and '-' in an instance id, so the rest is let through.
func notInID(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar || strings.ContainsRune(`"'{}[]`, r)
}

func readAll(name string, stdin io.Reader) (string, error) {
	if name == "-" {
		text, err := io.ReadAll(stdin)
		return string(text), err
	}
	text, err := os.ReadFile(name)
	return string(text), err
}

// orDash shows an empty list.
func orDash(ids []string) string {
	if len(ids) == 0 {
		return "-"
	}
	return strings.Join(ids, ", ")
}
