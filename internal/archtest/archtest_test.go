package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func loaded(t *testing.T) []*sourcePackage {
	t.Helper()
	packages, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 20 {
		t.Fatalf("found only %d packages below %s: the walk is broken", len(packages), root)
	}
	return packages
}

// TestEveryPackageHasALevel keeps the picture complete: a new package must say where it stands.
func TestEveryPackageHasALevel(t *testing.T) {
	for _, p := range loaded(t) {
		if levelOf(p.dir) < 0 {
			t.Errorf("%s has no level: say in rules.go where it stands", p.dir)
		}
	}
}

func TestEveryPackageHasAComment(t *testing.T) {
	for _, p := range loaded(t) {
		if !p.doc {
			t.Errorf("%s has no package comment: say its one purpose in a sentence", p.dir)
		}
	}
}

func TestArrowsPointDown(t *testing.T) {
	for _, p := range loaded(t) {
		at := levelOf(p.dir)
		if at < 0 {
			continue
		}
		for imported, pos := range p.imports {
			dir, ok := own(imported)
			if !ok || dir == p.dir {
				continue
			}
			if to := levelOf(dir); to < at && to >= 0 {
				continue
			}
			if isSibling(levels[at], p.dir, dir) {
				continue
			}
			t.Errorf("%s: %s (%s) may not import %s: %s", pos, p.dir, levels[at].name, dir, levels[at].why)
		}
	}
}

func TestForeignModulesStayWhereTheyBelong(t *testing.T) {
	for _, p := range loaded(t) {
		for imported, pos := range p.imports {
			for _, rule := range outsideRules {
				if imported != rule.module && !strings.HasPrefix(imported, rule.module+"/") {
					continue
				}
				if !slices.ContainsFunc(rule.allowed, func(pattern string) bool { return matches(pattern, p.dir) }) {
					t.Errorf("%s: %s may not import %s: %s", pos, p.dir, imported, rule.why)
				}
			}
		}
	}
}

func TestPurePackagesTouchNothing(t *testing.T) {
	for _, p := range loaded(t) {
		if !slices.Contains(purePackages, p.dir) {
			continue
		}
		for imported, pos := range p.imports {
			if remedy, banned := bannedImports[imported]; banned {
				t.Errorf("%s: pure package %s imports %s: %s", pos, p.dir, imported, remedy)
			}
		}
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				checkPureNode(t, p, n)
				return true
			})
		}
	}
}

func checkPureNode(t *testing.T, p *sourcePackage, n ast.Node) {
	switch n := n.(type) {
	case *ast.GoStmt:
		t.Errorf("%s: pure package %s starts a goroutine: its owner has them", p.fset.Position(n.Pos()), p.dir)
	case *ast.SelectorExpr:
		if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(bannedTimeFuncs, n.Sel.Name) {
			t.Errorf("%s: pure package %s calls time.%s: take the time as an argument", p.fset.Position(n.Pos()), p.dir, n.Sel.Name)
		}
	}
}

// TestRulesCanFail plants one violation of each kind, so that a rule that has stopped looking is noticed.
func TestRulesCanFail(t *testing.T) {
	if at := levelOf("thread/task"); at < 0 || levelOf("thread") <= at {
		t.Error("thread must stand above thread/task")
	}
	if isSibling(levels[levelOf("thread")], "thread", "metadata/rest") {
		t.Error("thread may import metadata/rest: the sibling rule lets everything through")
	}
	if !matches("cmd/...", "cmd/millrace") || matches("thread", "thread/task") {
		t.Error("pattern matching is broken")
	}
}

func levelOf(dir string) int {
	// A full name beats a pattern, so that integration/cluster may stand lower than integration/....
	for i, l := range levels {
		if slices.Contains(l.packages, dir) {
			return i
		}
	}
	for i, l := range levels {
		if slices.ContainsFunc(l.packages, func(pattern string) bool { return matches(pattern, dir) }) {
			return i
		}
	}
	return -1
}

func isSibling(l level, from, to string) bool {
	for pattern, allowed := range l.siblings {
		if matches(pattern, from) && slices.ContainsFunc(allowed, func(a string) bool { return matches(a, to) }) {
			return true
		}
	}
	return false
}
