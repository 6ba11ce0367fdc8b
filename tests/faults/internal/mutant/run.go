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

// A Result is how a campaign came to find a mutant's mistake.
type Result struct {
	// Runs is how many it took, and Failed how many of those went wrong in another
	// way.
	Runs, Failed int
	// KilledBy are the checks that found it, in the run that did, and Violation is the
	// first that they found; none if the mutant survived.
	KilledBy  []string
	Violation string
	Took      time.Duration
}

// A program is that of a campaign with the mutant in it, and where it keeps what it
// finds.
type program struct{ path, out string }

// errRunFailed is that of a run that went wrong, but not as the mutant should.
var errRunFailed = errors.New("the run went wrong")

// Test builds the program with the mutant in it, and plays runs, each by its
// arguments, until one has violations or there are none left. What was found stays
// in the directory.
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

// run plays one run, and returns the list of what was found.
func (p program) run(ctx context.Context, args []string, violationsFile string) (list string, err error) {
	if err := os.RemoveAll(p.out); err != nil { // what an earlier run has left
		return "", err
	}
	run := exec.CommandContext(ctx, p.path, append(args, "-out", p.out)...) //nolint:gosec // it was just built
	// It ends its servers and clients by itself, and is given the time.
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

// killedBy returns the names of the checks that have found the mutant by a list of
// violations, each once, and the first of these violations.
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
