package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/reqlock/reqlock/tests/docs"
)

// frameworkRow matches a row of the README's table of frameworks: the framework, and the code of the
// lock on a route.
var frameworkRow = regexp.MustCompile("(?m)^\\| \\[?(Gin|Echo|gRPC|none)\\b[^|]*\\| `([^`]+)` \\|")

func TestTheRowOfEachFrameworkCompiles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	preludeOf := map[string]string{"Gin": "gin", "Echo": "echo", "gRPC": "grpc", "none": docs.DefaultPrelude}
	var blocks []docs.Block
	for _, row := range frameworkRow.FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, docs.Block{Page: "README.md/" + row[1], Line: 1, Prelude: preludeOf[row[1]], Text: row[2] + "\n"})
	}
	if len(blocks) != len(preludeOf) {
		t.Errorf("README.md has a row of %d frameworks, want %d", len(blocks), len(preludeOf))
	}
	for _, finding := range check(t, blocks) {
		t.Error(finding)
	}
}
