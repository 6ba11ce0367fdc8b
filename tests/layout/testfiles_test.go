package layout

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// ofNoFile matches test files that need not name a file of the product.
var ofNoFile = regexp.MustCompile(`^(fixture_\w+|example\w*|bench\w*|fuzz\w*|export\w*|main)_test\.go$`)

// The tests of x.go are in x_test.go or x_<scenario>_test.go, so a reader finds them.
func TestEachTestFileNamesTheFileThatItTests(t *testing.T) {
	all := files(t, ".go")
	for name := range all {
		dir, base := path.Split(name)
		x, isTest := strings.CutSuffix(base, "_test.go")
		if !isTest || strings.HasPrefix(dir, "tests/") || ofNoFile.MatchString(base) {
			continue
		}
		for all[dir+x+".go"] == "" && x != "" {
			x = x[:max(0, strings.LastIndex(x, "_"))]
		}
		if x == "" {
			t.Errorf("%s names no file that it tests: call it x_test.go or x_<scenario>_test.go after a file x.go", name)
		}
	}
}
