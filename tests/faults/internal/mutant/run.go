package mutant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Result says how a campaign found a mutant.
type Result struct {
	// Runs is the number of runs, and Failed the number of those that failed without
	// killing the mutant.
	Runs, Failed int
	// KilledBy lists the checks that found the mutant, and Violation is the first of their
	// violations. Both are empty if the mutant survived.
	KilledBy  []string
	Violation string
	Took      time.Duration
}

// A program is a campaign with a mutant, and the directory for its violations.
type program struct{ path, out string }

// errRunFailed is the error of a run that failed without a violation that the mutant
// explains.
var errRunFailed = errors.New("the run went wrong")

// Test builds the program with the mutant, and executes runs by their arguments until one
// has a violation or none is left. The violations stay in the directory.
func (m Mutant) Test(ctx context.Context, tree Tree, dir string, runs [][]string, violationsFile string) (Result, error) {
	var result Result
	begun := time.Now()
	path, err := m.Build(ctx, tree, dir)
	if err != nil {
		return result, err
	}
	p := program{path, filepath.Join(dir, "out")}
	for _, args := range runs {
		result.Runs++
		var list string
		list, err = p.run(ctx, args, violationsFile)
		result.KilledBy, result.Violation = m.killedBy(list)
		result.Took = time.Since(begun)
		if err == nil && list != "" && len(result.KilledBy) == 0 {
			err = errRunFailed
		}
		switch {
		case ctx.Err() != nil:
			return result, ctx.Err()
		case errors.Is(err, errRunFailed):
			result.Failed++
		case err != nil:
			return result, fmt.Errorf("mutant %s: %w", m.Name, err)
		case len(result.KilledBy) > 0:
			return result, nil
		}
	}
	return result, nil
}

// run executes one run, and returns the list of its violations.
func (p program) run(ctx context.Context, args []string, violationsFile string) (list string, err error) {
	if err := os.RemoveAll(p.out); err != nil { // the output of an earlier run
		return "", err
	}
	run := exec.CommandContext(ctx, p.path, append(args, "-out", p.out)...) //nolint:gosec // it was just built
	// The program ends its servers and clients by itself, which takes time.
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	run.WaitDelay = 30 * time.Second
	var output bytes.Buffer
	run.Stdout, run.Stderr = &output, &output
	err = run.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case !errors.As(err, &exit) || exit.ExitCode() != 1:
		return "", fmt.Errorf("faults %s: %w\n%s", strings.Join(args, " "), err, output.String())
	}
	kept, err := filepath.Glob(filepath.Join(p.out, "*", violationsFile))
	if err != nil || len(kept) == 0 {
		return "", errors.Join(errRunFailed, err)
	}
	text, err := os.ReadFile(kept[0]) // there is one run
	if err == nil && len(text) == 0 {
		err = errRunFailed
	}
	return string(text), err
}

// killedBy returns the checks that have found the mutant, each once, and the first of their
// violations.
func (m Mutant) killedBy(list string) (checks []string, first string) {
	own := regexp.MustCompile(m.Checks)
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		name, _, _ := strings.Cut(line, ":")
		if !own.MatchString(name) || slices.Contains(checks, name) {
			continue
		}
		if checks == nil {
			first = line
		}
		checks = append(checks, name)
	}
	return checks, first
}
