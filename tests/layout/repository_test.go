package layout

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
