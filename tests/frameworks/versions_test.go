package frameworks

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// versionRow matches a row of the page's table: a module and its version.
var versionRow = regexp.MustCompile("(?m)^\\| \\[.+?\\]\\(#.+?\\) \\| `(\\S+ v\\S+)` \\|")

func TestThePageHasTheVersionsOfGoMod(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/frameworks.md")
	if err != nil {
		t.Fatal(err)
	}
	required, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	rows := versionRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) != 7 {
		t.Errorf("docs/frameworks.md has %d modules, want 7", len(rows))
	}
	for _, row := range rows {
		if !strings.Contains(string(required), "\n\t"+row[1]+"\n") {
			t.Errorf("docs/frameworks.md has %s, and go.mod does not", row[1])
		}
	}
}
