package coordinator

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A mutant is the coordinator with one rule broken. The scripts and the model must notice each: an oracle that never
// fails proves nothing.
type mutant struct {
	name     string
	file     string
	old, new string // the edit; old must stand in the file exactly once
}

// TestMutantsApply checks in every run that the table of mutants still fits the code.
func TestMutantsApply(t *testing.T) {
	for _, mu := range slices.Concat(mutants, ruleMutants) {
		if _, err := mu.source(); err != "" {
			t.Errorf("%s: %s", mu.name, err)
		}
	}
}

// TestMutants compiles each mutant through an overlay and runs the scripts and the model against it. It takes some
// minutes:
//
//	COORDINATOR_MUTANTS=1 go test ./membership/coordinator -run TestMutants -v -timeout 30m
func TestMutants(t *testing.T) {
	if os.Getenv("COORDINATOR_MUTANTS") == "" {
		t.Skip("COORDINATOR_MUTANTS is not set: each mutant is a build of its own, some minutes in all")
	}
	caught := regexp.MustCompile(`--- FAIL: (Test\w+/?\w*)`)
	for _, mu := range slices.Concat(mutants, ruleMutants) {
		t.Run(strings.NewReplacer(" ", "-", ":", "").Replace(mu.name), func(t *testing.T) {
			out, err := mu.test(t)
			by := caught.FindAllStringSubmatch(out, -1)
			switch {
			case strings.Contains(out, "panic: ") && err != nil:
				t.Log("caught: the machine panics")
			case err == nil:
				t.Errorf("survived: no script and no seed of the model notices")
			case len(by) == 0:
				t.Errorf("was not tested: %v\n%s", err, out)
			default:
				t.Logf("caught by %s", by[len(by)-1][1])
			}
		})
	}
}

// source is the mutated file, or why the edit cannot be made.
func (mu mutant) source() (source, problem string) {
	text, err := os.ReadFile(mu.file)
	if err != nil {
		return "", err.Error()
	}
	switch n := strings.Count(string(text), mu.old); {
	case n != 1:
		return "", mu.file + " does not have exactly one place for the edit; adapt the table to the code:\n" + mu.old
	case mu.old == mu.new:
		return "", "the edit changes nothing"
	}
	return strings.Replace(string(text), mu.old, mu.new, 1), ""
}

// test runs the package's other tests on the mutant.
func (mu mutant) test(t *testing.T) (out string, err error) {
	t.Helper()
	source, problem := mu.source()
	if problem != "" {
		t.Fatal(problem)
	}
	file, err := filepath.Abs(mu.file)
	if err != nil {
		t.Fatal(err)
	}
	mutated := filepath.Join(t.TempDir(), mu.file)
	if err := os.WriteFile(mutated, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(list, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", list, "-run", "TestScripts|TestModel", "-failfast", "-timeout", "2m", ".")
	cmd.Env = append(os.Environ(), "MODEL_SEEDS=300", "MODEL_FROM=", "MODEL_SEED=", "COORDINATOR_SCRIPTS=")
	combined, err := cmd.CombinedOutput()
	return string(combined), err
}
