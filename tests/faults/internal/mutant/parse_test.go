package mutant

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const head = "A mistake of\ntwo lines.\n\nfaults: ^a$\non: server\nchecks: ^b\n\n"

func TestParse(t *testing.T) {
	m, err := Parse("m", head+"--- f\n@@\n stays\n-old\n+new\n@@\n-other\n\n--- g\n@@\n-x\n+y\n")
	if err != nil {
		t.Fatal(err)
	}
	if m.Description != "A mistake of two lines." || m.Faults != "^a$" || m.On != "server" || m.Checks != "^b" {
		t.Errorf("got %+v", m)
	}
	want := []edit{{"f", "stays\nold\n", "stays\nnew\n"}, {"f", "other\n", ""}, {"g", "x\n", "y\n"}}
	if len(m.edits) != len(want) {
		t.Fatalf("got %q", m.edits)
	}
	for i, e := range m.edits {
		if e != want[i] {
			t.Errorf("edit %d: got %q, want %q", i, e, want[i])
		}
	}
}

func TestParseRefusesWhatMakesNoSense(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"no mistake":            {"\n\n--- f\n@@\n-x\n+y\n", "what the mistake is"},
		"no faults":             {"M.\n\non: server\n\n--- f\n@@\n-x\n+y\n", "which faults"},
		"no checks":             {"M.\n\nfaults: .\non: server\n\n--- f\n@@\n-x\n+y\n", "which checks"},
		"checks are no pattern": {"M.\n\nchecks: (\n", "line 3"},
		"no deployment":         {"M.\n\nfaults: .\nchecks: .\n\n--- f\n@@\n-x\n+y\n", "which deployment"},
		"faults are no pattern": {"M.\n\nfaults: (\n", "line 3"},
		"unknown field":         {"M.\n\nfault: a\n", "no field"},
		"no edits":              {head, "changes nothing"},
		"no file":               {head + "@@\n-x\n+y\n", "without a file"},
		"text before an edit":   {head + "--- f\n-x\n", "before any @@"},
		"a line without a mark": {head + "--- f\n@@\nx\n", "begins neither"},
		"only new lines":        {head + "--- f\n@@\n+y\n", "no lines that are there already"},
		"nothing new":           {head + "--- f\n@@\n-x\n+x\n", "changes nothing"},
		"an early edit is bad":  {head + "--- f\n@@\n x\n--- g\n@@\n-x\n+y\n", "changes nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("m", c.text)
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "mutant m") {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func TestApplyWantsTheLinesExactlyOnce(t *testing.T) {
	for name, c := range map[string]struct{ product, says string }{
		"once":           {"a\nold\nb\n", ""},
		"at the start":   {"old\nb\n", ""},
		"at the end":     {"a\nold\n", ""},
		"missing":        {"a\nb\n", "does not have these lines"},
		"twice":          {"old\na\nold\n", "more than once"},
		"twice in a row": {"old\nold\n", "more than once"},
		"part of a line": {"not so old\n", "does not have these lines"},
		"no such file":   {"", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Parse("m", head+"--- f\n@@\n-old\n+new\n")
			if err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			if c.product != "" {
				if err := os.WriteFile(filepath.Join(root, "f"), []byte(c.product), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			changed, err := m.changed(root)
			if c.says == "" {
				if want := strings.Replace(c.product, "old", "new", 1); err != nil || changed["f"] != want {
					t.Errorf("got %q, %v; want %q", changed["f"], err, want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "mutant m") {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func TestLoadWantsToFindSomething(t *testing.T) {
	if _, err := Load(t.TempDir(), regexp.MustCompile("x")); err == nil {
		t.Error("an empty directory has mutants")
	}
}
