package mutant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A Trail is how a campaign came to find a mutant's mistake.
type Trail struct {
	// Runs is how many it took, and Failed how many of those went wrong without a
	// finding.
	Runs, Failed int
	// Found are the checks that found it, in the run that did; none if the mutant
	// survived.
	Found []string
	Took  time.Duration
}

// A program is that of a campaign with the mutant in it, and where it keeps what it
// finds.
type program struct{ path, out string }

// errWrong is that of a run without a finding that went wrong all the same.
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
		trail.Found, err = p.play(ctx, args, findings)
		trail.Took = time.Since(begun)
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

// play plays one run, and returns the checks that have found something.
func (p program) play(ctx context.Context, args []string, findings string) ([]string, error) {
	run := exec.CommandContext(ctx, p.path, append(args, "-out", p.out)...) //nolint:gosec // it was just built
	// It ends its servers and clients by itself, and is given the time.
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	run.WaitDelay = 30 * time.Second
	var said bytes.Buffer
	run.Stdout, run.Stderr = &said, &said
	err := run.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil, nil
	case !errors.As(err, &exit) || exit.ExitCode() != 1:
		return nil, fmt.Errorf("faults %s: %w\n%s", strings.Join(args, " "), err, said.String())
	}
	kept, err := filepath.Glob(filepath.Join(p.out, "*", findings))
	if err != nil {
		return nil, err
	}
	for _, path := range kept {
		text, err := os.ReadFile(path) //nolint:gosec // the run has written it
		if err != nil {
			return nil, err
		}
		if found := checksOf(string(text)); len(found) > 0 {
			return found, nil
		}
	}
	return nil, errWrong
}

// checksOf returns the names of the checks in a list of findings, each once.
func checksOf(list string) []string {
	var names []string
	seen := map[string]bool{}
	for line := range strings.Lines(list) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}
