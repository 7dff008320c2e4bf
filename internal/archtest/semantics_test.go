package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	inPackage = regexp.MustCompile("`([a-z/]+)`: ((?:`[A-Za-z0-9_.]+`(?: \\([^)]*\\))?(?:, )?)+)")
	quoted    = regexp.MustCompile("`([A-Za-z0-9_.]+)`")
)

// Every test and script that docs/semantics.md names as a proof exists in the package that it names.
func TestSemanticsNamesRealTests(t *testing.T) {
	root := filepath.Join("..", "..")
	doc, err := os.ReadFile(filepath.Join(root, "docs", "semantics.md"))
	if err != nil {
		t.Fatal(err)
	}
	proofs := 0
	for _, m := range inPackage.FindAllStringSubmatch(string(doc), -1) {
		dir := filepath.Join(root, filepath.FromSlash(m[1]))
		for _, name := range quoted.FindAllStringSubmatch(m[2], -1) {
			proofs++
			if !proofExists(t, dir, name[1]) {
				t.Errorf("docs/semantics.md: package %s has no %s", m[1], name[1])
			}
		}
	}
	if names := strings.Count(string(doc), "`Test") + strings.Count(string(doc), ".txt`"); proofs < names-3 { // three are in the introduction
		t.Errorf("only %d of about %d names were understood", proofs, names)
	}
}

// proofExists looks for a test function, or a script.
func proofExists(t *testing.T, dir, name string) bool {
	t.Helper()
	if strings.HasSuffix(name, ".txt") {
		_, err := os.Stat(filepath.Join(dir, "testdata", name))
		return err == nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
