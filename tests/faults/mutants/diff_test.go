package main

import (
	"context"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A mutant must follow each change of the lines that it quotes. One that names no fault or no
// check would survive, and one that does not compile would prove nothing.
func TestEachDiffFitsTheProduct(t *testing.T) {
	t.Parallel()
	tree, err := findTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := load(tree, regexp.MustCompile(""))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 {
		t.Errorf("there are only %d mutants", len(all))
	}
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if _, err := faultsOf(m); err != nil {
				t.Error(err)
			}
			for check := range strings.SplitSeq(strings.Trim(m.checks, "^()$"), "|") {
				if !slices.Contains(validate.Checks(), check) {
					t.Errorf("no check is named %s", check)
				}
			}
			compile(t, tree, m)
		})
	}
}

// compile compiles the packages that a mutant changes.
func compile(t *testing.T, tree tree, m mutant) {
	t.Helper()
	overlay, err := m.overlay(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"build", "-overlay", overlay}
	for file := range m.files {
		if path.Ext(file) == ".go" {
			args = append(args, filepath.Dir(file))
		}
	}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "go", args...)
	command.Dir = tree.product
	if out, err := command.CombinedOutput(); len(args) > 3 && err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
