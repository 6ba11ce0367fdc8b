package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// errDoesNotCompile is the error of a change that the compiler refuses.
var errDoesNotCompile = errors.New("does not compile")

// failedTest finds the names of tests that failed.
var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// PackageTests find mutants by the tests of a package.
type packageTests struct {
	dir   string
	tests string // an expression for their names
	limit time.Duration
}

// find runs the tests with the mutant. What failed runs once more: on a busy machine a test
// may fail for another reason.
func (p packageTests) find(ctx context.Context, m mutant, dir string) (by string, err error) {
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", err
	}
	by, failed, err := p.run(ctx, overlay, p.tests)
	if err != nil || failed == "" {
		return by, err
	}
	if by, _, err = p.run(ctx, overlay, failed); err == nil && by == "" {
		return "", fmt.Errorf("unstable: %s failed once, and then passed", failed)
	}
	return by, err
}

// run runs tests, and returns what failed, also as an expression for the names of tests.
func (p packageTests) run(ctx context.Context, overlay, tests string) (by, failed string, err error) {
	command := exec.CommandContext(ctx, "go", "test", "-vet=off", "-failfast", "-count=1", //nolint:gosec // our own files
		"-timeout", p.limit.String(), "-overlay", overlay, "-run", tests, ".")
	command.Dir, command.WaitDelay = p.dir, time.Second
	out, err := command.CombinedOutput()
	var names []string
	for _, match := range failedTest.FindAllSubmatch(out, -1) {
		names = append(names, string(match[1]))
	}
	switch {
	case err == nil:
		return "", "", nil
	case bytes.Contains(out, []byte("[build failed]")):
		return "", "", errDoesNotCompile
	case len(names) > 0:
		failed = "^(" + strings.Join(names, "|") + ")$"
		return strings.Join(names[:min(3, len(names))], ", "), failed, nil
	}
	for _, line := range []string{"panic: ", "fatal error: ", "goroutines are left: "} { // tests that hang end with a panic, too
		if by = firstLine(out, line); by != "" {
			return by, "", nil
		}
	}
	return "", "", fmt.Errorf("go test: %w\n%s", err, out)
}
