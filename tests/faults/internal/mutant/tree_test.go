package mutant

import (
	"context"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
)

// all are the campaign's own mutants.
func all(t *testing.T) (Tree, []Mutant) {
	t.Helper()
	tree, err := FindTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mutants, err := Load(filepath.Join(tree.Campaign, "mutants"), regexp.MustCompile(""))
	if err != nil {
		t.Fatal(err)
	}
	return tree, mutants
}

// Each mutant has to follow the product, or it is none any more.
func TestAllMutantsFitTheProduct(t *testing.T) {
	tree, mutants := all(t)
	if len(mutants) < 16 {
		t.Errorf("there are only %d mutants", len(mutants))
	}
	for _, m := range mutants {
		if _, err := m.changed(tree.Product); err != nil {
			t.Error(err)
		}
		if _, err := fault.DeploymentOf(m.On); err != nil {
			t.Errorf("mutant %s: on: %v", m.Name, err)
		}
	}
}

// What the compiler says to a mutant it says to its package alone, so the rest is
// not built.
func TestAllMutantsCompile(t *testing.T) {
	tree, mutants := all(t)
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			overlay, err := m.Apply(tree.Product, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			build := exec.CommandContext(t.Context(), "go", append([]string{"build", "-overlay", overlay}, m.packages()...)...)
			build.Dir = tree.Product
			if out, err := build.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// packages are those that a mutant changes.
func (m Mutant) packages() []string {
	var packages []string
	for _, e := range m.edits {
		packages = append(packages, "./"+path.Dir(e.file))
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// Scripts are embedded files, which are not read by the compiler as its sources
// are.
func TestAMutantOfAnEmbeddedFileIsInTheProgram(t *testing.T) {
	product := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":     "module example.org/product\n\ngo 1.26\n",
		"main.go":    "package main\n\nimport _ \"embed\"\n\n//go:embed script.lua\nvar script string\n\nfunc main() { print(script) }\n",
		"script.lua": "return 1\n",
	} {
		if err := os.WriteFile(filepath.Join(product, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Parse("m", "A mistake.\n\nfaults: .\non: server\nchecks: .\n\n--- script.lua\n@@\n-return 1\n+return 2\n")
	if err != nil {
		t.Fatal(err)
	}
	program, err := m.Build(context.Background(), Tree{product, product}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	if err != nil || string(out) != "return 2\n" {
		t.Errorf("got %q, %v", out, err)
	}
}
