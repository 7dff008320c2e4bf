package coordinator

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Each difference between the profiles has a scenario in which they print different things, or expect different things.
func TestEveryDifferenceHasAScript(t *testing.T) {
	scenarios := scenarios(t)
	for _, d := range Differences() {
		s, ok := scenarios[d.Script]
		text := s.text
		switch {
		case !ok:
			t.Errorf("%s: there is no scenario %s", d.Name, d.Script)
		case strings.Contains(text, "kafka:\n") && strings.Contains(text, "kip345:\n"):
		case strings.Contains(text, "profile=kafka") && strings.Contains(text, "profile=kip345"):
		default:
			t.Errorf("%s: scenario %s does not differ between the profiles", d.Name, d.Script)
		}
	}
}

// The table in the documentation is this one.
func TestDifferencesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/coordinator.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, d := range Differences() {
		fmt.Fprintf(&table, "| %s | %s | %s | `%s` |\n", d.Name, d.Kafka, d.KIP345, d.Script)
	}
	if !strings.Contains(string(text), table.String()) {
		t.Errorf("docs/coordinator.md does not have the table of differences as it is now:\n%s", &table)
	}
}
