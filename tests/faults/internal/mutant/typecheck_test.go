package mutant

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Packages are the packages of a product and all their dependencies, as go list reports
// them. They are safe for concurrent use.
type packages struct {
	byDir map[string]listed // by their directories in the product

	mu       sync.Mutex // an importer is not safe for concurrent use
	files    *token.FileSet
	importer types.Importer
}

// A listed is one package as go list reports it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ GoVersion string }
}

// listPackages lists the packages that the mutants change. Go list compiles their
// dependencies, unless the build cache has them.
func listPackages(t *testing.T, tree Tree, mutants []Mutant) *packages {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module"}
	for _, m := range mutants {
		for _, dir := range m.directories() {
			args = append(args, "./"+dir)
		}
	}
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Dir = tree.Product
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	p, exports := &packages{byDir: map[string]listed{}, files: token.NewFileSet()}, map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var one listed
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[one.ImportPath] = one.Export
		if dir, err := filepath.Rel(tree.Product, one.Dir); err == nil && filepath.IsLocal(dir) {
			p.byDir[filepath.ToSlash(dir)] = one
		}
	}
	p.importer = importer.ForCompiler(p.files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	return p
}

// check type-checks the package in a directory, with changed files.
func (p *packages) check(dir string, changed map[string]string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, found := p.byDir[dir]
	if !found {
		return fmt.Errorf("no package in %s", dir)
	}
	var files []*ast.File
	for _, name := range one.GoFiles {
		var source any // nil: read the file
		if text, is := changed[path.Join(dir, name)]; is {
			source = text
		}
		file, err := parser.ParseFile(p.files, filepath.Join(one.Dir, name), source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	config := types.Config{Importer: p.importer, Sizes: types.SizesFor("gc", runtime.GOARCH), GoVersion: "go" + one.Module.GoVersion}
	_, err := config.Check(one.ImportPath, p.files, files, nil)
	return err
}

// directories returns the directories of the files that a mutant changes.
func (m Mutant) directories() (all []string) {
	for _, e := range m.edits {
		all = append(all, path.Dir(e.file))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
