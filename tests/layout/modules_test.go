package layout

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

func TestEachModuleIsUpdatedAndChecked(t *testing.T) {
	top := root(t)
	var files []string
	for _, file := range []string{".github/dependabot.yml", ".github/workflows/ci.yml", ".ci/run"} {
		text, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file, string(text))
	}
	var modules []string
	for _, pattern := range []string{"*/go.mod", "*/*/go.mod"} {
		found, err := fs.Glob(os.DirFS(top), pattern)
		if err != nil {
			t.Fatal(err)
		}
		modules = append(modules, found...)
	}
	if len(modules) == 0 {
		t.Fatal("found no module inside the main module")
	}
	for _, file := range modules {
		dir := path.Dir(file)
		for i := 0; i < len(files); i += 2 {
			if !strings.Contains(files[i+1], dir) {
				t.Errorf("%s does not name the module %s", files[i], dir)
			}
		}
	}
}
