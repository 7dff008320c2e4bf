package coordinator

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scripted is one scenario of testdata.
type scripted struct {
	file string
	rows []string // of RULES.md that it shows, besides the one that it is named after
	text string   // its first line and what follows
}

// scenarios reads all scenarios of testdata by name.
func scenarios(t *testing.T) map[string]scripted {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`rows=\(([^)]*)\)`)
	all := make(map[string]scripted)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(text), "\nscenario ")[1:] {
			head, _, _ := strings.Cut(part, "\n")
			name, _, _ := strings.Cut(head, " ")
			s := scripted{file: file, text: part}
			if m := rows.FindStringSubmatch(head); m != nil {
				s.rows = strings.Split(m[1], ",")
			}
			if other, ok := all[name]; ok {
				t.Errorf("scenario %s is in %s and in %s", name, other.file, file)
			}
			all[name] = s
		}
	}
	return all
}

// Each row of testdata/RULES.md has a scenario that is named after it or names it, and no scenario names another row.
func TestEveryRuleHasAScript(t *testing.T) {
	text, err := os.ReadFile("testdata/RULES.md")
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([A-Z]\d+) \|`).FindAllStringSubmatch(string(text), -1) {
		if slices.Contains(rules, m[1]) {
			t.Errorf("RULES.md has row %s twice", m[1])
		}
		rules = append(rules, m[1])
	}
	if len(rules) < 100 {
		t.Errorf("RULES.md has only %d rows: is its form another one?", len(rules))
	}
	rules = append(rules, numbered("D%d", 1, 17)...) // of docs/coordinator.md
	shown := make(map[string]bool)
	for name, s := range scenarios(t) {
		shown[strings.TrimRight(name, "abcd")] = true
		for _, row := range s.rows {
			shown[row] = true
			if !slices.Contains(rules, row) {
				t.Errorf("scenario %s names row %s, which is not in RULES.md", name, row)
			}
		}
	}
	for _, row := range rules {
		if !shown[row] {
			t.Errorf("no scenario shows row %s: name one after it, or add it to the rows=(…) of one", row)
		}
	}
}

// The scenarios that were agreed upon are all there. Those between them, S130 to S140, are about clients: they are tests of
// other packages, which docs/semantics.md names (internal/archtest holds that those exist).
func TestEveryScenarioIsThere(t *testing.T) {
	all := scenarios(t)
	for _, r := range [][2]int{{1, 16}, {20, 32}, {40, 47}, {50, 59}, {60, 74}, {80, 90}, {95, 104}, {110, 117}, {120, 128}, {150, 153}} {
		for _, name := range numbered("S%02d", r[0], r[1]) {
			s, ok := all[name]
			if !ok {
				t.Errorf("there is no scenario %s", name)
			} else if strings.Count(s.text, "\n----\n") < 2 {
				t.Errorf("scenario %s is empty", name)
			}
		}
	}
	semantics, err := os.ReadFile("../../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range numbered("S%d", 130, 140) {
		if !strings.Contains(string(semantics), "\n| "+name+" ") {
			t.Errorf("docs/semantics.md has no row for %s", name)
		}
	}
}

func numbered(format string, from, to int) []string {
	var names []string
	for n := from; n <= to; n++ {
		names = append(names, fmt.Sprintf(format, n))
	}
	return names
}
