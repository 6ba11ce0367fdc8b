package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A test is one test function of the package.
type test struct {
	name    string
	took    time.Duration
	reaches map[int]bool
}

// A tester runs the tests of an instrumented package.
type tester struct {
	*instrumented
	program string
	scratch string
	workers int
	limit   time.Duration // see limitOf
}

// build compiles the tests.
func (t *tester) build(ctx context.Context) error {
	t.program = filepath.Join(t.scratch, "tests")
	command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", t.overlay, "-o", t.program, ".") //nolint:gosec // our own files
	command.Dir = t.dir
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("the mutants do not compile: %w\n%s", err, out)
	}
	return nil
}

// A result is the result of some tests.
type result int

const (
	passed result = iota
	failed
	timedOut
)

// run runs the tests that match the pattern.
func (t *tester) run(ctx context.Context, limit time.Duration, pattern string, environment ...string) (r result, out []byte) {
	limited, cancel := context.WithTimeout(ctx, limit+time.Second) // the tests print their stacks before that
	defer cancel()
	command := exec.CommandContext(limited, "sh", "-c", `ulimit -v 16000000; exec "$0" "$@"`, //nolint:gosec // our own program
		t.program, "-test.failfast", "-test.run", pattern, "-test.timeout", limit.String())
	command.Dir, command.Env = t.dir, append(os.Environ(), environment...)
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	switch {
	case err == nil:
		return passed, out
	case limited.Err() != nil || bytes.Contains(out, []byte("panic: test timed out after")):
		return timedOut, out
	default:
		return failed, out
	}
}

// limitOf returns how long the tests may take with a mutant: much longer than they took
// without one, because the machine may be busier by then.
func (t *tester) limitOf(tests []test) time.Duration {
	limit := t.limit
	for _, test := range tests {
		limit += 5 * test.took
	}
	return limit
}

// learn runs each test by itself, and returns those that reach a mutant.
func (t *tester) learn(ctx context.Context) ([]test, error) {
	_, out := t.run(ctx, t.limit, "^$") // the program works
	//nolint:gosec // the test binary that this command has built
	list := exec.CommandContext(ctx, t.program, "-test.list", ".*")
	list.Dir = t.dir
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests: %w\n%s", err, out)
	}
	var tests []test
	var unused []string
	var mu sync.Mutex
	t.each(len(strings.Fields(string(names))), func(i int) {
		name := strings.Fields(string(names))[i]
		if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") && !strings.HasPrefix(name, "Example") {
			return
		}
		trace := filepath.Join(t.scratch, "trace-"+name)
		begun := time.Now()
		result, out := t.run(ctx, t.limit, "^"+name+"$", "MUTANT_TRACE="+trace)
		learned := test{name: name, took: time.Since(begun), reaches: map[int]bool{}}
		reached, _ := os.ReadFile(trace) //nolint:gosec // in the scratch folder
		for _, id := range bytes.Fields(reached) {
			n, _ := strconv.Atoi(string(id))
			learned.reaches[n] = true
		}
		mu.Lock()
		defer mu.Unlock()
		if result != passed {
			unused = append(unused, name+"\n"+string(out))
		} else if len(learned.reaches) > 0 {
			tests = append(tests, learned)
		}
	})
	slices.SortFunc(tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	for _, u := range unused {
		fmt.Fprintln(os.Stderr, "not used, since it fails without a mutant:", u)
	}
	return tests, nil
}

// An outcome is what became of a mutant.
type outcome int

const (
	untried outcome = iota // the command was interrupted before
	killed
	hung      // killed: its tests did not end
	unstable  // its tests failed once, and passed when they ran again
	survived  // all its tests passed
	unreached // no test reaches it
)

// outcomes returns the outcome of each mutant. It tries them in random order, so that the
// tried ones are a fair sample if the command is interrupted.
func (t *tester) outcomes(ctx context.Context, tests []test) []outcome {
	all, order := make([]outcome, len(t.mutants)), rand.Perm(len(t.mutants)) //nolint:gosec // not a secret
	t.each(len(order), func(i int) { all[order[i]] = t.outcome(ctx, t.mutants[order[i]], tests) })
	return all
}

// outcome runs the tests that reach the mutant, some at a time, until they kill it.
func (t *tester) outcome(ctx context.Context, m mutant, tests []test) outcome {
	var reaching []test
	for _, test := range tests {
		if test.reaches[m.id] {
			reaching = append(reaching, test)
		}
	}
	if len(reaching) == 0 {
		return unreached
	}
	end := survived
	for some := range slices.Chunk(reaching, 12) {
		switch o := t.kill(ctx, m, some); {
		case ctx.Err() != nil:
			return untried
		case o == killed, o == hung:
			return o
		case o == unstable:
			end = unstable
		}
	}
	return end
}

// kill runs the tests with the mutant. If they fail, they run once more: on a busy machine a
// test may fail for another reason.
func (t *tester) kill(ctx context.Context, m mutant, tests []test) outcome {
	names := make([]string, len(tests))
	for i, test := range tests {
		names[i] = test.name
	}
	pattern, limit := "^("+strings.Join(names, "|")+")$", t.limitOf(tests)
	for _, end := range [...]outcome{survived, unstable} {
		switch r, _ := t.run(ctx, limit, pattern, "MUTANT="+strconv.Itoa(m.id)); r {
		case passed:
			return end
		case timedOut:
			return hung
		case failed:
		}
	}
	return killed
}

// each calls do for 0 to n-1, by as many workers as the tester has.
func (t *tester) each(n int, do func(i int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for range t.workers {
		group.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}
