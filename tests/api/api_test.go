// Package api keeps the exported API of the packages that users import as text, in the
// folder api of the repository: one line for each function, type, field, method, constant
// and variable. Its test fails if the text and the code differ, so that a review sees each
// change of the API.
//
// After a change of the API, write the text again with go generate ./tests/api, and name
// the change in CHANGELOG.md.
package api

//go:generate go test -count=1 -run ^TestTheTextOfTheAPIIsThatOfTheCode$ . -write

import (
	"flag"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/exportdata"
)

var write = flag.Bool("write", false, "write the text of the API again")

func TestMain(m *testing.M) { suite.Main(m) }

const (
	root   = "../.." // the repository, seen from this package
	module = "github.com/reqlock/reqlock"
)

// packages returns the folders of the packages that users import, by the folders of their modules.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	for _, pattern := range []string{"*/doc.go", "*/*/doc.go"} {
		files, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			top, _, _ := strings.Cut(file, "/")
			if slices.Contains([]string{"internal", "tests", "examples"}, top) {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, top, "go.mod")); err != nil {
				top = "." // no module of its own
			}
			found[top] = append(found[top], path.Dir(file))
		}
	}
	return found
}

// fileOf returns the path of the text of a package.
func fileOf(dir string) string { return filepath.Join(root, "api", path.Base(dir)+".txt") }

func TestTheTextOfTheAPIIsThatOfTheCode(t *testing.T) {
	t.Parallel()
	kept, err := filepath.Glob(filepath.Join(root, "api", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for top, dirs := range packages(t) {
		var paths []string
		for _, dir := range dirs {
			paths = append(paths, module+"/"+dir)
		}
		compiled, err := exportdata.Importer(t.Context(), filepath.Join(root, top), paths)
		if err != nil {
			t.Fatal(err)
		}
		for i, dir := range dirs {
			p, err := compiled.Import(paths[i])
			if err != nil {
				t.Fatal(err)
			}
			compare(t, dir, describe(p))
			kept = slices.DeleteFunc(kept, func(file string) bool { return file == fileOf(dir) })
		}
	}
	if len(kept) > 0 {
		t.Errorf("no package has the API of %v", kept)
	}
	if t.Failed() {
		t.Log("if the change is intended, run go generate ./tests/api, and name the change in CHANGELOG.md")
	}
}

// compare compares the text of a package with the kept one, or writes it.
func compare(t *testing.T, dir, text string) {
	t.Helper()
	if *write {
		if err := os.WriteFile(fileOf(dir), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(fileOf(dir))
	if err != nil {
		t.Error(err)
	}
	old, now := strings.Split(string(before), "\n"), strings.Split(text, "\n")
	for _, line := range slices.Concat(old, now) {
		switch {
		case !slices.Contains(now, line):
			t.Errorf("%s, removed: %s", dir, line)
		case !slices.Contains(old, line):
			t.Errorf("%s, added: %s", dir, line)
		}
	}
}
