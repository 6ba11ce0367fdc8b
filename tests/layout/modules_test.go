package layout

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"
)

func TestEachModuleIsUpdatedAndChecked(t *testing.T) {
	top := root(t)
	mentions := map[string]string{ // by file, how it names a module: a bare name may also be that of something else
		".github/dependabot.yml":   `(?m)/%s(,|\]|$)`,
		".github/workflows/ci.yml": `(?m)working-directory: %s$`,
		".ci/run":                  `\(cd %s &&`,
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
		for name, mention := range mentions {
			text, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile(fmt.Sprintf(mention, dir)).Match(text) {
				t.Errorf("%s does not name the module %s", name, dir)
			}
		}
	}
}
