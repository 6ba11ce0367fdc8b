package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/campaign"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
)

// maxRuns is how many runs may miss a mutant before it has survived.
const maxRuns = 100

// A campaignFinder finds mutants by runs of the fault campaign.
type campaignFinder struct {
	tree
	seed uint64
}

// find builds the program of the campaign with the mutant, and executes runs until a check
// that the mutant names finds it.
func (c campaignFinder) find(ctx context.Context, m mutant, dir string) (by string, err error) {
	faults, err := faultsOf(m) //nolint:contextcheck // a fault is executed with the context of its System
	if err != nil {
		return "", err
	}
	program, err := c.build(ctx, m, dir)
	if err != nil {
		return "", err
	}
	failed := 0
	for n := range maxRuns {
		out := filepath.Join(dir, "out", strconv.Itoa(n))
		seed := strconv.FormatUint(c.seed+uint64(n/len(faults)), 10)
		violations, err := run(ctx, program, out, "-run", "^"+regexp.QuoteMeta(faults[n%len(faults)])+"$", "-on", m.on, "-seed", seed, "-out", out)
		if err != nil || ctx.Err() != nil {
			return "", err
		}
		if by := m.foundBy(violations); by != "" {
			return fmt.Sprintf("%s in run %d, %d others failed", by, n+1, failed), nil
		}
		failed += min(len(violations), 1)
	}
	return "", nil
}

// faultsOf returns the names of the faults that a mutant names.
func faultsOf(m mutant) (names []string, err error) {
	pattern, err := regexp.Compile(m.faults)
	if err != nil {
		return nil, err
	}
	on, err := fault.DeploymentOf(m.on)
	if err != nil {
		return nil, err
	}
	for _, f := range fault.All() {
		if pattern.MatchString(f.Name) && slices.Contains(f.On, on) {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("mutant %s: no fault on %s is called like %q", m.name, m.on, m.faults)
	}
	return names, nil
}

// build builds the program of the campaign, and returns its path.
func (c campaignFinder) build(ctx context.Context, m mutant, dir string) (program string, err error) {
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", err
	}
	program = filepath.Join(dir, "faults")
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", program, ".") //nolint:gosec // our own files
	build.Dir = c.campaign
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mutant %s does not compile: %w\n%s", m.name, err, out)
	}
	return program, nil
}

// run executes one run, and returns its violations: nil if it found nothing, and a list
// without a check if the run itself failed.
func run(ctx context.Context, program, out string, args ...string) (violations []string, err error) {
	command := exec.CommandContext(ctx, program, args...) //nolint:gosec // it was just built
	// The program ends its servers and clients by itself, which takes time.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 30 * time.Second
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil, os.RemoveAll(out)
	case !errors.As(err, &exit) || exit.ExitCode() != 1:
		return nil, fmt.Errorf("faults %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	kept, _ := filepath.Glob(filepath.Join(out, "*", campaign.ViolationsFile))
	if len(kept) == 0 {
		return []string{""}, nil
	}
	text, err := os.ReadFile(kept[0]) // there is one run
	return strings.Split(strings.TrimSpace(string(text)), "\n"), err
}

// foundBy returns the checks that found the mutant, each once, with the first violation.
func (m mutant) foundBy(violations []string) string {
	own := regexp.MustCompile(m.checks)
	var checks []string
	first := ""
	for _, violation := range violations {
		check, _, _ := strings.Cut(violation, ":")
		if own.MatchString(check) && !slices.Contains(checks, check) {
			checks = append(checks, check)
			if first == "" {
				first = violation
			}
		}
	}
	if first == "" {
		return ""
	}
	return strings.Join(checks, ", ") + " (" + first + ")"
}
