package layout

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "../.." // the repository, seen from this package
	module = "github.com/reqlock/reqlock"
)

// files returns the texts of the files with this ending, by their paths in the repository. It
// includes those of all modules, except what programs write and hidden folders.
func files(t *testing.T, ending string) map[string]string {
	t.Helper()
	found, all := make(map[string]string), os.DirFS(root)
	err := fs.WalkDir(all, ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (base[0] == '.' || base == "out" || base == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ending):
			return nil
		}
		text, err := fs.ReadFile(all, name)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatalf("found no file %s", ending)
	}
	return found
}

// modules returns the folders of the modules inside the main module.
func modules(t *testing.T) (dirs []string) {
	t.Helper()
	for file := range files(t, "go.mod") {
		if file != "go.mod" {
			dirs = append(dirs, path.Dir(file))
		}
	}
	return dirs
}

// isInModule reports whether one of the modules has the file.
func isInModule(modules []string, file string) bool {
	return slices.ContainsFunc(modules, func(dir string) bool { return strings.HasPrefix(file, dir+"/") })
}
