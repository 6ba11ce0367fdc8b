package mutant

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
)

func TestMain(m *testing.M) { suite.Main(m) }

// loadAll returns the mutants of the campaign.
func loadAll(t *testing.T) (Tree, []Mutant) {
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

// A mutant must follow each change of the lines that it quotes.
func TestAllMutantsFitTheProduct(t *testing.T) {
	tree, mutants := loadAll(t)
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

// A mutant that does not compile proves nothing. Only the changed packages are
// type-checked, since the compiler reports an error of a mutant there.
func TestAllMutantsCompile(t *testing.T) {
	t.Parallel()
	tree, mutants := loadAll(t)
	packages := listPackages(t, tree, mutants)
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			changed, err := m.changed(tree.Product)
			if err != nil {
				t.Fatal(err)
			}
			for _, dir := range m.directories() {
				if err := packages.check(dir, changed); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestATypeCheckFindsMistakes(t *testing.T) {
	t.Parallel()
	product := t.TempDir()
	const text = "package p\n\nimport \"fmt\"\n\nfunc F() { fmt.Println(1) }\n"
	for name, text := range map[string]string{"go.mod": "module example.org/product\n\ngo 1.26\n", "p.go": text} {
		if err := os.WriteFile(filepath.Join(product, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packages := listPackages(t, Tree{Product: product}, []Mutant{{edits: []edit{{file: "p.go"}}}})
	for name, c := range map[string]struct{ old, new, message string }{
		"nothing":            {"1", "2", ""},
		"a syntax error":     {"{", "((", "expected"},
		"an unknown name":    {"(1)", "(x)", "undefined: x"},
		"an unused import":   {"fmt.Println(1)", "println(1)", "imported and not used"},
		"an unused variable": {"fmt.Println(1)", "x := 1; fmt.Println(2)", "declared and not used"},
		"another type":       {"fmt.Println(1)", "var x int = fmt.Sprint(1); _ = x", "cannot use"},
	} {
		err := packages.check(".", map[string]string{"p.go": strings.Replace(text, c.old, c.new, 1)})
		if (err == nil) != (c.message == "") || err != nil && !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: got %v, want %q", name, err, c.message)
		}
	}
}

// Scripts are embedded: the compiler does not read them as it reads sources.
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
