package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// linkerFlag matches the flag -X of the linker: the path of a package and the name of a
// variable.
var linkerFlag = regexp.MustCompile(`-X (` + regexp.QuoteMeta(module) + `\S*)\.(\w+)=`)

// The linker ignores a variable that does not exist.
func TestEachVariableThatCISetsByTheLinkerExists(t *testing.T) {
	top := root(t)
	script, err := os.ReadFile(filepath.Join(top, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	flags := linkerFlag.FindAllStringSubmatch(string(script), -1)
	if len(flags) == 0 {
		t.Fatal("CI sets no variable by the linker: remove this test, too")
	}
	for _, flag := range flags {
		dir, name := strings.TrimPrefix(flag[1], module+"/"), flag[2]
		declared := regexp.MustCompile(`(?m)^var ` + name + ` = "`)
		files, err := filepath.Glob(filepath.Join(top, filepath.FromSlash(dir), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || declared.Match(text)
		}
		if !found {
			t.Errorf("no file of %s declares the string variable %s", dir, name)
		}
		// The package has a test that compares the variable with the environment.
		if !strings.Contains(string(script), " ./"+dir) {
			t.Errorf("CI sets %s of %s, and does not run the tests of that package", name, dir)
		}
	}
}
