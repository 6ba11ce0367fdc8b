package connectlock_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/reqlock/reqlock/tests/docs"
)

// The code of the pages for Connect compiles, and that of the README's table.
func TestEachBlockOfThePagesCompiles(t *testing.T) {
	t.Parallel()
	blocks, err := docs.Pages("..")
	if err != nil {
		t.Fatal(err)
	}
	blocks = slices.DeleteFunc(blocks, func(b docs.Block) bool { return b.Prelude != "connect" })
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	row := regexp.MustCompile("(?m)^\\| \\[Connect\\][^|]*\\| `([^`]+)` \\|").FindSubmatch(readme)
	if err != nil || row == nil || len(blocks) < 2 {
		t.Fatalf("%v, the row %q and %d blocks", err, row, len(blocks))
	}
	blocks = append(blocks, docs.Block{Page: "README.md/Connect", Line: 1, Prelude: "connect", Text: "var methods connectlock.Key\n" + string(row[1]) + "\n"},
		docs.Block{Page: "wrong", Line: 1, Prelude: "connect", Text: "unused := connectlock.Peer(ctx)\n"}) // so the check checks
	preludes := filepath.Join("..", "tests", "docs", "prelude", "common")
	findings, err := docs.Check(t.Context(), ".", map[string]docs.Prelude{"connect": {preludes}}, blocks)
	if err != nil || len(findings) != 1 || findings[0][:8] != "wrong:1:" {
		t.Errorf("%v, %q", err, findings)
	}
}
