package docs_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/docs"
)

func TestMain(m *testing.M) { suite.Main(m) }

// root is the repository, seen from this package.
const root = "../.."

// preludes returns the preludes of this module.
func preludes() map[string]docs.Prelude {
	found := make(map[string]docs.Prelude)
	for _, name := range []string{"http", "gin", "echo", "grpc"} {
		found[name] = docs.Prelude{filepath.Join("prelude", "common"), filepath.Join("prelude", name)}
	}
	return found
}

// check returns the findings in blocks.
func check(t *testing.T, blocks []docs.Block) []string {
	t.Helper()
	findings, err := docs.Check(t.Context(), root, preludes(), blocks)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

func TestEachBlockCompiles(t *testing.T) {
	blocks, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	// Tests of the modules tests/bench and tests/otel check these.
	blocks = slices.DeleteFunc(blocks, func(b docs.Block) bool { return b.Prelude == "peers" || b.Prelude == "otel" })
	if len(blocks) < 5 {
		t.Fatalf("found %d blocks", len(blocks))
	}
	for _, finding := range check(t, blocks) {
		t.Error(finding)
	}
}
