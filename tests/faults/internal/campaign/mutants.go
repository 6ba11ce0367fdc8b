package campaign

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/mutant"
)

// mutantRuns is how many runs may miss a mutant before it has survived.
const mutantRuns = 100

// testMutants executes runs with each mutant of the settings until one of them kills the
// mutant. It reports whether a mutant survived.
func testMutants(ctx context.Context, w io.Writer, s Settings) (survived bool, err error) {
	tree, err := mutant.FindTree(ctx)
	if err != nil {
		return true, err
	}
	mutants, err := mutant.Load(filepath.Join(tree.Campaign, "mutants"), s.Names)
	if err != nil {
		return true, err
	}
	fmt.Fprintf(w, "seed %d: %d mutants, up to %d runs with each\n", s.Seed, len(mutants), mutantRuns)
	h := mutantTest{settings: s, tree: tree, w: w}
	next := make(chan mutant.Mutant)
	var workers sync.WaitGroup
	for range s.Parallel {
		workers.Go(func() {
			for m := range next {
				h.test(ctx, m)
			}
		})
	}
	for _, m := range mutants {
		if ctx.Err() != nil {
			break
		}
		next <- m
	}
	close(next)
	workers.Wait()
	return h.survived, nil
}

// A mutantTest is the test of some mutants. It is safe for concurrent use.
type mutantTest struct {
	settings Settings
	tree     mutant.Tree

	mu       sync.Mutex
	w        io.Writer
	survived bool
}

// test tests one mutant, and prints the result.
func (h *mutantTest) test(ctx context.Context, m mutant.Mutant) {
	result, dir, err := h.runUntilKilled(ctx, m)
	h.mu.Lock()
	defer h.mu.Unlock()
	line := fmt.Sprintf("%-30s %3d runs %6.0fs ", m.Name, result.Runs, result.Took.Seconds())
	if result.Failed > 0 {
		line += fmt.Sprintf(" (%d of them failed)", result.Failed)
	}
	switch {
	case ctx.Err() != nil:
		line += " interrupted"
	case err != nil:
		h.survived = true
		line += " " + err.Error()
	case len(result.KilledBy) == 0:
		h.survived = true
		line += " SURVIVED: " + m.Description
	default:
		line += " found by " + strings.Join(result.KilledBy, ", ") + "\n    " + result.Violation
	}
	fmt.Fprintln(h.w, line)
	if dir != "" {
		fmt.Fprintf(h.w, "    kept in %s\n", dir)
	}
}

// runUntilKilled executes runs with the mutant. It removes the directory of the runs if the
// mutant was killed, or if the test was interrupted.
func (h *mutantTest) runUntilKilled(ctx context.Context, m mutant.Mutant) (result mutant.Result, kept string, err error) {
	runs, err := mutantPlan(m, fault.All(), h.settings.Seed) //nolint:contextcheck // a fault is executed with the context of its System
	if err != nil {
		return result, "", err
	}
	dir, err := os.MkdirTemp("", "mutant-"+m.Name+"-")
	if err != nil {
		return result, "", err
	}
	result, err = m.Test(ctx, h.tree, dir, runs, ViolationsFile)
	if ctx.Err() != nil || err == nil && len(result.KilledBy) > 0 {
		return result, "", os.RemoveAll(dir)
	}
	return result, dir, err
}

// mutantPlan returns the arguments of the runs with a mutant.
func mutantPlan(m mutant.Mutant, faults []fault.Fault, seed uint64) ([][]string, error) {
	names, err := regexp.Compile(m.Faults)
	if err != nil {
		return nil, err
	}
	kind, err := fault.DeploymentOf(m.On)
	if err != nil {
		return nil, err
	}
	var plan [][]string
	for _, r := range repeatFaults(faultsOn(named(faults, names), kind), kind, seed, mutantRuns) {
		plan = append(plan, []string{
			"-run", "^" + regexp.QuoteMeta(r.Fault.Name) + "$", "-on", kind.String(), "-seed", strconv.FormatUint(r.Seed, 10),
		})
	}
	if len(plan) == 0 {
		return nil, fmt.Errorf("mutant %s: no fault on %s is called like %q", m.Name, kind.String(), m.Faults)
	}
	return plan, nil
}
