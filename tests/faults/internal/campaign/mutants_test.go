package campaign

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/mutant"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// A mutant that names no fault or no check would survive, or stay unseen.
func TestEachMutantNamesExistingFaultsAndChecks(t *testing.T) {
	tree, err := mutant.FindTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mutants, err := mutant.Load(filepath.Join(tree.Campaign, "mutants"), regexp.MustCompile(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		plan, err := mutantPlan(m, fault.All(), 1)
		if err != nil || len(plan) != mutantRuns {
			t.Errorf("mutant %s: %d runs, %v", m.Name, len(plan), err)
			continue
		}
		for check := range strings.SplitSeq(strings.Trim(m.Checks, "^()$"), "|") {
			if !slices.Contains(validate.Checks(), check) {
				t.Errorf("mutant %s: no check is named %s", m.Name, check)
			}
		}
		for _, args := range plan {
			if _, err := Parse(&strings.Builder{}, args); err != nil {
				t.Errorf("mutant %s: %v: %v", m.Name, args, err)
			}
		}
	}
}

func TestMutantPlan(t *testing.T) {
	plan, err := mutantPlan(mutant.Mutant{Name: "m", Faults: "^[ab]$", On: "server"}, three(), 7)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"-run ^a$ -on server -seed 7", "-run ^b$ -on server -seed 7", "-run ^a$ -on server -seed 8"}
	for i, line := range want {
		if got := strings.Join(plan[i], " "); got != line {
			t.Errorf("run %d: got %s, want %s", i+1, got, line)
		}
	}
	for _, m := range []mutant.Mutant{
		{Name: "m", Faults: "^[ab]$", On: "moon"}, {Name: "m", Faults: "^none$", On: "server"}, {Name: "m", Faults: "^c$", On: "server"},
	} {
		if plan, err := mutantPlan(m, three(), 7); err == nil {
			t.Errorf("%+v has %d runs", m, len(plan))
		}
	}
}

func TestInterruptedMutantTestLeavesNothing(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	h := mutantTest{settings: Settings{Seed: 1}}
	m := mutant.Mutant{Name: "m", Faults: ".", On: "server"}
	if _, kept, err := h.runUntilKilled(ctx, m); kept != "" {
		t.Errorf("kept %q, %v", kept, err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
