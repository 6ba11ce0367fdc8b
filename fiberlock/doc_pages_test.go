package fiberlock_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/reqlock/reqlock/tests/docs"
)

// The main module does not require Fiber.
func TestPagesCompile(t *testing.T) {
	t.Parallel()
	blocks, err := docs.Pages("..")
	if err != nil {
		t.Fatal(err)
	}
	blocks = slices.DeleteFunc(blocks, func(b docs.Block) bool { return b.Prelude != "fiber" })
	wrong := docs.Block{Page: "wrong", Line: 1, Prelude: "fiber", Text: "fiberlock.Parameter(locks)\n"}
	preludes := map[string]docs.Prelude{"fiber": {filepath.Join("testdata", "prelude")}}
	findings, err := docs.Check(t.Context(), ".", preludes, append(blocks, wrong))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"wrong:1: undefined: fiberlock.Parameter"}; len(blocks) != 5 || !slices.Equal(findings, want) {
		t.Errorf("%d blocks, got %q, want only %q", len(blocks), findings, want)
	}
}
