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

// A Trail is how a campaign came to find a mutant's mistake.
type Trail struct {
	// Runs is how many it took, and Failed how many of those went wrong in another
	// way.
	Runs, Failed int
	// Found are the checks that found it, in the run that did, and Finding is the
	// first that they found; none if the mutant survived.
	Found   []string
	Finding string
	Took    time.Duration
}

// A program is that of a campaign with the mutant in it, and where it keeps what it
// finds.
type program struct{ path, out string }

// errWrong is that of a run that went wrong, but not as the mutant should.
var errWrong = errors.New("the run went wrong")

// Hunt builds the program with the mutant in it, and plays runs, each by its
// arguments, until one has findings or there are none left. What was found stays
// in the directory.
func (m Mutant) Hunt(ctx context.Context, tree Tree, dir string, runs [][]string, findings string) (Trail, error) {
	var trail Trail
	begun := time.Now()
	path, err := m.Build(ctx, tree, dir)
	if err != nil {
		return trail, err
	}
	p := program{path, filepath.Join(dir, "out")}
	for _, args := range runs {
		trail.Runs++
		var list string
		list, err = p.play(ctx, args, findings)
		trail.Found, trail.Finding = m.seenIn(list)
		trail.Took = time.Since(begun)
		if err == nil && list != "" && len(trail.Found) == 0 {
			err = errWrong
		}
		switch {
		case ctx.Err() != nil:
			return trail, ctx.Err()
		case errors.Is(err, errWrong):
			trail.Failed++
		case err != nil:
			return trail, fmt.Errorf("mutant %s: %w", m.Name, err)
		case len(trail.Found) > 0:
			return trail, nil
		}
	}
	return trail, nil
}

// play plays one run, and returns the list of what was found.
func (p program) play(ctx context.Context, args []string, findings string) (list string, err error) {
	if err := os.RemoveAll(p.out); err != nil { // what an earlier run has left
		return "", err
	}
	run := exec.CommandContext(ctx, p.path, append(args, "-out", p.out)...) //nolint:gosec // it was just built
	// It ends its servers and clients by itself, and is given the time.
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	run.WaitDelay = 30 * time.Second
	var said bytes.Buffer
	run.Stdout, run.Stderr = &said, &said
	err = run.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case !errors.As(err, &exit) || exit.ExitCode() != 1:
		return "", fmt.Errorf("faults %s: %w\n%s", strings.Join(args, " "), err, said.String())
	}
	kept, err := filepath.Glob(filepath.Join(p.out, "*", findings))
	if err != nil || len(kept) == 0 {
		return "", errors.Join(errWrong, err)
	}
	text, err := os.ReadFile(kept[0]) // there is one run
	if err == nil && len(text) == 0 {
		err = errWrong
	}
	return string(text), err
}

// seenIn returns the names of the checks that have found the mutant by a list of
// findings, each once, and the first of these findings.
func (m Mutant) seenIn(list string) (checks []string, first string) {
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
