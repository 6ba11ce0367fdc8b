package redistest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root returns the folder of the main module: the next one above this package with a
// go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no folder above this one has a go.mod")
		}
		dir = filepath.Dir(dir)
	}
}

// The stack of a command is searched for this folder: a stale path would find nothing.
func TestTheCodeUnderTestIsWhereStacksAreSearched(t *testing.T) {
	t.Parallel()
	found := false
	err := filepath.WalkDir(filepath.Join(root(t), filepath.FromSlash(product)), func(name string, _ os.DirEntry, err error) error {
		found = found || strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		return err
	})
	if err != nil || !found {
		t.Errorf("%s holds Go files: %t, %v", product, found, err)
	}
}
