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

// huntRuns is how many runs a mutant may survive.
const huntRuns = 100

// hunt plays runs with each mutant that the settings name until its mistake is
// found. It reports whether one survived.
func hunt(ctx context.Context, w io.Writer, s Settings) (survived bool, err error) {
	tree, err := mutant.FindTree(ctx)
	if err != nil {
		return true, err
	}
	mutants, err := mutant.Load(filepath.Join(tree.Campaign, "mutants"), s.Names)
	if err != nil {
		return true, err
	}
	fmt.Fprintf(w, "seed %d: %d mutants, up to %d runs with each\n", s.Seed, len(mutants), huntRuns)
	h := hunting{settings: s, tree: tree, w: w}
	next := make(chan mutant.Mutant)
	var hunters sync.WaitGroup
	for range s.Parallel {
		hunters.Go(func() {
			for m := range next {
				h.hunt(ctx, m)
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
	hunters.Wait()
	return h.survived, nil
}

// hunting is the hunt for some mutants.
type hunting struct {
	settings Settings
	tree     mutant.Tree

	mu       sync.Mutex
	w        io.Writer
	survived bool
}

// hunt hunts for one mutant, and tells how that went.
func (h *hunting) hunt(ctx context.Context, m mutant.Mutant) {
	trail, dir, err := h.follow(ctx, m)
	h.mu.Lock()
	defer h.mu.Unlock()
	line := fmt.Sprintf("%-30s %3d runs %6.0fs ", m.Name, trail.Runs, trail.Took.Seconds())
	if trail.Failed > 0 {
		line += fmt.Sprintf(" (%d of them failed)", trail.Failed)
	}
	switch {
	case ctx.Err() != nil:
		line += " interrupted"
	case err != nil:
		h.survived = true
		line += " " + err.Error()
	case len(trail.Found) == 0:
		h.survived = true
		line += " SURVIVED: " + m.Mistake
	default:
		line += " found by " + strings.Join(trail.Found, ", ") + "\n    " + trail.Finding
	}
	fmt.Fprintln(h.w, line)
	if dir != "" {
		fmt.Fprintf(h.w, "    kept in %s\n", dir)
	}
}

// follow plays runs with the mutant. What it leaves in a directory is removed if
// the mistake was found, and also if the hunt was interrupted.
func (h *hunting) follow(ctx context.Context, m mutant.Mutant) (trail mutant.Trail, kept string, err error) {
	runs, err := huntPlan(m, fault.All(), h.settings.Seed) //nolint:contextcheck // a fault is played with the context of its scene
	if err != nil {
		return trail, "", err
	}
	dir, err := os.MkdirTemp("", "mutant-"+m.Name+"-")
	if err != nil {
		return trail, "", err
	}
	trail, err = m.Hunt(ctx, h.tree, dir, runs, FindingsFile)
	if ctx.Err() != nil || err == nil && len(trail.Found) > 0 {
		return trail, "", os.RemoveAll(dir)
	}
	return trail, dir, err
}

// huntPlan returns the arguments of the runs with a mutant.
func huntPlan(m mutant.Mutant, faults []fault.Fault, seed uint64) ([][]string, error) {
	names, err := regexp.Compile(m.Faults)
	if err != nil {
		return nil, err
	}
	kind, err := fault.DeploymentOf(m.On)
	if err != nil {
		return nil, err
	}
	var plan [][]string
	for _, r := range rounds(faultsOn(named(faults, names), kind), kind, seed, huntRuns) {
		plan = append(plan, []string{
			"-run", "^" + regexp.QuoteMeta(r.Fault.Name) + "$", "-on", kind.String(), "-seed", strconv.FormatUint(r.Seed, 10),
		})
	}
	if len(plan) == 0 {
		return nil, fmt.Errorf("mutant %s: no fault on %s is called like %q", m.Name, kind.String(), m.Faults)
	}
	return plan, nil
}
