package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/docs"

	// go test repeats the tests of this package after a change of what the pages import.
	_ "github.com/reqlock/reqlock/core/locktest"
	_ "github.com/reqlock/reqlock/echolock"
	_ "github.com/reqlock/reqlock/ginlock"
)

func TestMain(m *testing.M) { suite.Main(m) }

// root is the repository, seen from this package.
const root = "../.."

// read returns the text of a page.
func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// check returns the findings in blocks.
func check(t *testing.T, blocks []docs.Block) []string {
	t.Helper()
	preludes := make(map[string]docs.Prelude)
	for _, name := range []string{"http", "gin", "echo", "grpc"} {
		preludes[name] = docs.Prelude{filepath.Join("prelude", "common"), filepath.Join("prelude", name)}
	}
	findings, err := docs.Check(t.Context(), root, preludes, blocks)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

func TestEachBlockCompiles(t *testing.T) {
	t.Parallel()
	blocks, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	// Tests of the modules tests/bench, tests/otel, tests/clients, echov5lock, fiberlock and connectlock check the first six,
	// and TestExamplesAreThoseOfTheFiles the last.
	blocks = slices.DeleteFunc(blocks, func(b docs.Block) bool {
		return slices.Contains([]string{"peers", "otel", "clients", "echov5", "fiber", "connect", "example"}, b.Prelude)
	})
	if len(blocks) < 50 {
		t.Fatalf("found %d blocks", len(blocks))
	}
	wrong := docs.Block{Page: "wrong", Line: 1, Prelude: "http", Text: "unused := core.Must(core.Now(rdb))\n"} // so the check checks
	findings, known := check(t, append(blocks, wrong)), "wrong:1: undefined: core.Now"
	if !slices.Contains(findings, known) {
		t.Error("the check does not find a wrong name")
	}
	for _, finding := range findings {
		if finding != known {
			t.Error(finding)
		}
	}
}

// A block with the prelude example is a part of a file that is compiled and tested, apart from its indentation.
func TestExamplesAreThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	blocks, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	flat := func(text string) string { return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString("\n"+text, "") }
	texts, found := "", 0
	for _, file := range []string{"error.go", "idempotent.go", "lock.go"} {
		texts += flat(read(t, "examples/adapter/errlock/"+file))
	}
	frameworks, err := filepath.Glob(filepath.Join(root, "tests", "frameworks", "*.go"))
	if err != nil || len(frameworks) == 0 {
		t.Fatalf("found no files of tests/frameworks: %v", err)
	}
	for _, file := range frameworks {
		texts += flat(read(t, "tests/frameworks/"+filepath.Base(file)))
	}
	texts += flat(read(t, "adapter/example_test.go")) + flat(read(t, "tests/conformance/fixture_errlock_test.go"))
	for _, b := range blocks {
		if b.Prelude != "example" {
			continue
		}
		if found++; !strings.Contains(texts, flat(b.Text)) {
			t.Errorf("%s:%d: no example has this text", b.Page, b.Line)
		}
	}
	if found < 19 {
		t.Errorf("found only %d examples", found)
	}
}
