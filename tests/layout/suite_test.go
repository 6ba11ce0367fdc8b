package layout

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// Without suite.Main, a package neither looks for goroutines that its tests leave, nor tells
// which tests it skips. Modules that do not require the main one cannot call it.
func TestEachPackageWithTestsCallsSuiteMain(t *testing.T) {
	files, calls := os.DirFS(root(t)), make(map[string]bool) // by the folder of a package
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(path.Base(name), ".") || path.Base(name) == "testdata" || !canImportSuite(files, name)):
			return fs.SkipDir
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(files, name)
		dir := path.Dir(name)
		calls[dir] = calls[dir] || bytes.Contains(text, []byte("suite.Main(m"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(calls) < 70 {
		t.Errorf("found only %d packages with tests", len(calls))
	}
	for dir, called := range calls {
		if !called {
			t.Errorf("%s has tests and no TestMain with suite.Main", dir)
		}
	}
}

// canImportSuite reports whether a folder is no other module, or one that requires the main module.
func canImportSuite(files fs.FS, dir string) bool {
	if !hasModule(files, dir) {
		return true
	}
	mod, err := fs.ReadFile(files, path.Join(dir, "go.mod"))
	return err == nil && bytes.Contains(mod, []byte("github.com/reqlock/reqlock v"))
}
