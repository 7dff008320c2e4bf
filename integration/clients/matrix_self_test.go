package clients

import (
	"os"
	"strings"
	"testing"
)

func TestUnexpectedResults(t *testing.T) {
	c := client{limits: limits("fenced", noStatic)}
	for _, tc := range []struct {
		name string
		got  result
		want string // part of the complaint, or ""
	}{
		{"admin", result{OK: true}, ""},
		{"fenced", result{Limit: noStatic}, ""},
		{"admin", result{Error: "boom"}, "boom"},
		{"admin", result{Limit: noStatic}, "expected is"},
		{"fenced", result{Limit: "another"}, "expected is"},
		{"fenced", result{OK: true}, "passes by now"},
		{"fenced", result{Error: "boom"}, "boom"},
		{"admin", result{}, "no result"},
	} {
		why := c.unexpected(tc.name, tc.got)
		if (why == "") != (tc.want == "") || !strings.Contains(why, tc.want) {
			t.Errorf("%s %+v: %q, expected a complaint with %q", tc.name, tc.got, why, tc.want)
		}
	}
}

// TestDocumentShowsTheMatrix: docs/clients.md has the table that the runs are compared with, and every case.
func TestDocumentShowsTheMatrix(t *testing.T) {
	text, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	expected := func(c client) results { return c.expected(anyBroker) }
	for _, want := range []string{render(matrix, anyBroker, expected), summary(matrix)} {
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/clients.md lacks this table:\n%s", want)
		}
	}
	for _, tc := range cases {
		if want := "- **" + tc.name + "**: " + tc.what; !strings.Contains(string(text), want) {
			t.Errorf("docs/clients.md lacks %q", want)
		}
	}
}
