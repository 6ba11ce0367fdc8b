package layout

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
)

// ofNoFile matches test files that need not name a file of the product.
var ofNoFile = regexp.MustCompile(`^(fixture_\w+|example\w*|bench\w*|fuzz\w*|export\w*|main)_test\.go$`)

// The tests of x.go are in x_test.go or x_<scenario>_test.go, so a reader finds them.
func TestEachTestFileNamesTheFileThatItTests(t *testing.T) {
	t.Parallel()
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

var (
	// faultRow finds the rows of the page about faults: the number, what happens, what must
	// hold, whether it does, and the tests that show it.
	faultRow = regexp.MustCompile(`(?m)^\| (\d+) \| .+? \| .+? \| (.+?) \| (.*) \|$`)
	// testName finds names of tests with their folders.
	testName = regexp.MustCompile("`([\\w/]+)\\.((?:Test|Fuzz)\\w+)`")
)

// A row that names a test which was deleted or renamed shows nothing.
func TestEachFaultNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	page, tests := files(t, ".md")["tests/faults/FAULTS.md"], files(t, "_test.go")
	rows := faultRow.FindAllStringSubmatch(page, -1)
	if len(rows) < 57 || len(rows) != strings.Count(page, "\n| ")-strings.Count(page, "\n| |") {
		t.Errorf("the page has %d complete rows", len(rows))
	}
	for i, row := range rows {
		number, kind, names := row[1], row[2], testName.FindAllStringSubmatch(row[3], -1)
		if number != fmt.Sprint(i+1) || len(names) == 0 || len(names) != 1+strings.Count(row[3], "<br>") {
			t.Errorf("row %d has the number %s and names %d tests", i+1, number, len(names))
		}
		if kind != "holds" && !strings.Contains(page, fmt.Sprintf("\n- **%s, %s.** ", number, kind)) {
			t.Errorf("row %s, %s: the page does not say what protects the user then", number, kind)
		}
		for _, name := range names {
			if !declares(tests, name[1], name[2]) {
				t.Errorf("row %s: %s has no %s", number, name[1], name[2])
			}
		}
	}
}

// declares reports whether a test file in a folder declares the function.
func declares(tests map[string]string, folder, function string) bool {
	for file, text := range tests {
		if path.Dir(file) == folder && strings.Contains(text, "\nfunc "+function+"(") {
			return true
		}
	}
	return false
}
