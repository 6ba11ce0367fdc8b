package layout

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path of the main module.
const module = "github.com/reqlock/reqlock"

// root returns the folder of the main module: the next folder above this package with a
// go.mod that declares it.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+module+"\n") {
			return dir
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no folder above this one has the go.mod of " + module)
		}
		dir = filepath.Dir(dir)
	}
}

// A source is a Go file of this repository that is not a test.
type source struct {
	path    string   // from the root, with slashes
	imports []string // their paths
}

// isImporterOf reports whether the file imports the package or one below it.
func (s source) isImporterOf(path string) bool {
	return slices.ContainsFunc(s.imports, func(imported string) bool {
		return imported == path || strings.HasPrefix(imported, path+"/")
	})
}

// sources returns the Go files of the repository without tests. The linter reads those of
// all modules by the same rules.
func sources(t *testing.T) []source {
	t.Helper()
	var found []source
	files := os.DirFS(root(t))
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(path.Base(name), ".") || path.Base(name) == "out" || path.Base(name) == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		s := source{path: name}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, imported)
		}
		found = append(found, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
