package main

import (
	"context"
	"os"
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

const head = "A mistake of\ntwo lines.\n\nfaults: ^a$\non: server\nchecks: ^b\n\n"

// writeFiles writes files into a new directory, and returns it.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDiffs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, wantF, wantErr string }{
		"one edit":              {head + "--- f\n@@\n-old\n+new\n", "a\nnew\nb\nb\n", ""},
		"the first line":        {head + "--- f\n@@\n-a\n+x\n", "x\nold\nb\nb\n", ""},
		"lines that stay":       {head + "--- f\n@@\n a\n-old\n b\n+c\n", "a\nb\nc\nb\n", ""},
		"two edits, two files":  {head + "--- f\n@@\n-a\n+x\n@@\n-old\n\n--- g\n@@\n-a\n+y\n", "x\nb\nb\n", ""},
		"a file twice":          {head + "--- f\n@@\n-a\n+x\n--- f\n@@\n-old\n+y\n", "x\ny\nb\nb\n", ""},
		"no mistake":            {"\n\n--- f\n@@\n-a\n+x\n", "", "no description"},
		"no checks":             {"M.\n\nfaults: .\non: server\n\n--- f\n@@\n-a\n+x\n", "", "no description"},
		"no change":             {head, "", "no change"},
		"an unknown field":      {"M.\n\nfault: a\n\n--- f\n@@\n-a\n+x\n", "", "no field"},
		"a file that is absent": {head + "--- h\n@@\n-a\n+x\n", "", "no such file"},
		"no edit":               {head + "--- f\n-a\n", "", "begin with @@"},
		"a line without a mark": {head + "--- f\n@@\na\n", "", "begins neither"},
		"new lines alone":       {head + "--- f\n@@\n+x\n", "", "quotes no line"},
		"nothing new":           {head + "--- f\n@@\n-a\n+a\n", "", "changes none"},
		"lines that are absent": {head + "--- f\n@@\n-ol\n+x\n", "", "exactly once"},
		"lines that are twice":  {head + "--- f\n@@\n-b\n+x\n", "", "exactly once"},
	} {
		product := writeFiles(t, map[string]string{"f": "a\nold\nb\nb\n", "g": "a\n"})
		m, err := parse(product, "m", c.text)
		if c.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("%s: got %v, want %q", name, err, c.wantErr)
			}
			continue
		}
		if got := m.files[filepath.Join(product, "f")]; err != nil || got != c.wantF || m.mistake != "A mistake of two lines." || m.checks != "^b" {
			t.Errorf("%s: got %q of %+v, %v", name, got, m, err)
		}
	}
}

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
