package coordinator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs every script in testdata, and those in the directory that COORDINATOR_SCRIPTS names.
// testdata/README.md describes the language.
func TestScripts(t *testing.T) {
	dirs := []string{"testdata"}
	if extra := os.Getenv("COORDINATOR_SCRIPTS"); extra != "" {
		dirs = append(dirs, extra)
	}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
		if err != nil || len(files) == 0 {
			t.Errorf("no scripts (*.txt) in %s: %v", dir, err)
		}
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
		}
	}
}

func runScript(t *testing.T, file string) {
	s := &script{t: t}
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
		return s.run(d)
	})
}

// script runs each command on one world per profile and shows where the profiles differ.
type script struct {
	t      *testing.T
	name   string
	worlds []*world
}

func (s *script) run(d *datadriven.TestData) string {
	switch {
	case d.Input != "":
		d.Fatalf(s.t, "a command is one line, and a line ---- follows it; here follows %q", d.Input)
	case strings.Contains("\n"+d.Expected, "\n----\n"):
		d.Fatalf(s.t, "a blank line ends what a command prints; here another command follows:\n%s", d.Expected)
	}
	a := newArgs(d.CmdArgs)
	if d.Cmd == "scenario" {
		return s.scenario(d, a)
	}
	if len(s.worlds) == 0 {
		d.Fatalf(s.t, "a script begins with: scenario NAME")
	}
	only := a.text("profile", "both")
	if _, err := ParseProfile(only); err != nil && only != "both" {
		d.Fatalf(s.t, "%v", err)
	}
	var names, outputs []string
	failed := false
	for _, w := range s.worlds {
		profile := w.m.cfg.Profile.String()
		if only != "both" && only != profile {
			continue
		}
		out, err := w.run(d.Cmd, a)
		if err == nil {
			err = w.check()
		}
		if err != nil {
			s.t.Errorf("%s: %s, profile %s: %s: %v", d.Pos, s.name, profile, d.Cmd, err)
			out += fmt.Sprintf("FAILED: %v\n", err)
			failed = true
		}
		names, outputs = append(names, profile), append(outputs, out)
	}
	if unknown := a.unused(); len(unknown) > 0 && !failed {
		d.Fatalf(s.t, "%s does not know %s", d.Cmd, strings.Join(unknown, ", "))
	}
	if d.Expected == anything {
		return anything
	}
	return merge(names, outputs)
}

// anything is the output of a command that a script does not want to compare.
const anything = "...\n"

// scenario starts with fresh coordinators, one per profile unless one is asked for.
func (s *script) scenario(d *datadriven.TestData, a *args) string {
	if len(d.CmdArgs) == 0 {
		d.Fatalf(s.t, "want: scenario NAME")
	}
	s.name = d.CmdArgs[0].Key
	a.bool(spelling(s.name))
	a.list("rows") // read by TestEveryRuleHasAScript
	profiles := []Profile{Kafka, KIP345}
	if only := a.text("profile", "both"); only != "both" {
		p, err := ParseProfile(only)
		if err != nil {
			d.Fatalf(s.t, "%v", err)
		}
		profiles = []Profile{p}
	}
	s.worlds = nil
	var names, outputs []string
	for _, p := range profiles {
		w := newWorld(p, a)
		s.worlds = append(s.worlds, w)
		names, outputs = append(names, p.String()), append(outputs, w.take())
	}
	if unknown := a.unused(); len(unknown) > 0 {
		d.Fatalf(s.t, "scenario does not know %s", strings.Join(unknown, ", "))
	}
	if d.Expected == anything {
		return anything
	}
	return merge(names, outputs)
}

// merge shows one output if all are equal, otherwise each under its profile's name.
func merge(names, outputs []string) string {
	equal := true
	for _, out := range outputs {
		equal = equal && out == outputs[0]
	}
	if len(outputs) > 0 && equal {
		return outputs[0]
	}
	var b strings.Builder
	for i, out := range outputs {
		fmt.Fprintf(&b, "%s:\n", names[i])
		for _, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	return b.String()
}
