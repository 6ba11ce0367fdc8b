package main

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A mutant must follow each change of the lines that it quotes. One that names no fault or no
// check would survive, and one that does not compile would prove nothing.
func TestEachDiffFitsTheProduct(t *testing.T) {
	t.Parallel()
	tree, err := findTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := load(tree, regexp.MustCompile(""))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 {
		t.Errorf("there are only %d mutants", len(all))
	}
	compiler := newCompiler(t, tree)
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			if _, err := faultsOf(m); err != nil {
				t.Error(err)
			}
			for check := range strings.SplitSeq(strings.Trim(m.checks, "^()$"), "|") {
				if !slices.Contains(validate.Checks(), check) {
					t.Errorf("no check is named %s", check)
				}
			}
			compiler.compile(t, m)
		})
	}
}

// A compiler checks the types of packages of the product, like the one of Go, but without writing code.
type compiler struct {
	files   *token.FileSet
	imports types.Importer
}

// newCompiler returns a compiler that has all that the product imports, as the go command has compiled it.
func newCompiler(t *testing.T, tree tree) compiler {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...")
	list.Dir = tree.product
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exported := make(map[string]string) // by path
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exported[name] = file
	}
	files := token.NewFileSet()
	return compiler{files, importer.ForCompiler(files, "gc", func(name string) (io.ReadCloser, error) { return os.Open(exported[name]) })}
}

// compile checks the packages that a mutant changes.
func (c compiler) compile(t *testing.T, m mutant) {
	t.Helper()
	for file := range m.files {
		if path.Ext(file) != ".go" {
			continue
		}
		dir, err := build.ImportDir(filepath.Dir(file), 0)
		if err != nil {
			t.Fatal(err)
		}
		var parsed []*ast.File
		for _, name := range dir.GoFiles {
			name = filepath.Join(dir.Dir, name)
			var source any
			if text, changed := m.files[name]; changed {
				source = text
			}
			one, err := parser.ParseFile(c.files, name, source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, one)
		}
		if _, err := (&types.Config{Importer: c.imports}).Check(dir.Name, c.files, parsed, nil); err != nil {
			t.Error(err)
		}
	}
}
