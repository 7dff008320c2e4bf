// Package archtest holds the arrows of this module: which package may import which, and what a pure package may
// not touch. Reviews forget, tests do not. Each rule says why it is there, and a violation prints that reason and
// the remedy. The rules themselves are in rules.go.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// modulePath prefixes every import of our own.
const modulePath = "github.com/millrace-io/millrace"

// A sourcePackage is one directory of non-test Go files.
type sourcePackage struct {
	dir     string // relative to the module root, with slashes
	doc     bool   // some file has a package comment
	files   map[string]*ast.File
	fset    *token.FileSet
	imports map[string]token.Position // import path -> one place that names it
}

// load parses every non-test Go file below root. Directories that hold no Go code of the module are left out.
func load(root string) ([]*sourcePackage, error) {
	packages := map[string]*sourcePackage{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); base != "." && name != root && (strings.HasPrefix(base, ".") || base == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		return addFile(packages, root, name)
	})
	if err != nil {
		return nil, err
	}
	list := make([]*sourcePackage, 0, len(packages))
	for _, p := range packages {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *sourcePackage) int { return strings.Compare(a.dir, b.dir) })
	return list, nil
}

func addFile(packages map[string]*sourcePackage, root, name string) error {
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	dir := path.Dir(rel)
	p := packages[dir]
	if p == nil {
		p = &sourcePackage{dir: dir, files: map[string]*ast.File{}, fset: token.NewFileSet(), imports: map[string]token.Position{}}
		packages[dir] = p
	}
	file, err := parser.ParseFile(p.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse %s: %w", rel, err)
	}
	p.files[rel] = file
	p.doc = p.doc || file.Doc != nil
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: import %s: %w", rel, spec.Path.Value, err)
		}
		p.imports[imported] = p.fset.Position(spec.Pos())
	}
	return nil
}

// own returns the directory of an import of this module.
func own(imported string) (dir string, ok bool) {
	if imported == modulePath {
		return ".", true
	}
	return strings.CutPrefix(imported, modulePath+"/")
}

// matches reports whether dir is the pattern, or lies below it when the pattern ends in "/...".
func matches(pattern, dir string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return dir == prefix || strings.HasPrefix(dir, prefix+"/")
	}
	return dir == pattern
}
