package main

import (
	"slices"
	"strings"
	"testing"
)

// Lists come from editors, shells and other systems.
func TestReadIDs(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"one a line":             {"a\nb\n", []string{"a", "b"}},
		"no end of line":         {"a\nb", []string{"a", "b"}},
		"Windows":                {"\ufeffa\r\nb\r\n\r\n", []string{"a", "b"}},
		"spaces around":          {"  a \n\tb\t\n", []string{"a", "b"}},
		"blank lines, comments":  {"# gone since Monday\n\na # its disk is gone\n#b\n", []string{"a"}},
		"commas":                 {"a,b,\nc, a\n", []string{"a", "b", "c"}},
		"what others' ids have":  {"pod/1:2@x\n", []string{"pod/1:2@x"}},
		"again after a comment":  {"a\n#\na\nb", []string{"a", "b"}},
		"in another line, again": {"a\nb,a\n", []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readIDs("-", strings.NewReader(test.text))
			if err != nil || !slices.Equal(splitIDs(got...), test.want) {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestReadIDsRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "there are no instance ids in the input: standard input has none",
		"\n# nobody\n":        "there are no instance ids in the input",
		"a\nb  /10.0.0.1\n":   `standard input, line 2: "b  /10.0.0.1" is not an instance id`,
		`{"instances": []}`:   `line 1: "{\"instances\": []}" is not an instance id`,
		"a\x00b":              `line 1: "a\x00b" is not an instance id`,
		"\xff\xfea\x00\n\x00": "line 1:",
	} {
		if got, err := readIDs("-", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}
