package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
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
	limit   time.Duration // of the tests of one mutant
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

// run runs the tests that match the pattern, and reports whether they pass.
func (t *tester) run(ctx context.Context, pattern string, environment ...string) (passed bool, out []byte) {
	limited, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	command := exec.CommandContext(limited, "sh", "-c", `ulimit -v 16000000; exec "$0" "$@"`, //nolint:gosec // our own program
		t.program, "-test.failfast", "-test.run", pattern, "-test.timeout", (t.limit - time.Second).String())
	command.Dir, command.Env = t.dir, append(os.Environ(), environment...)
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	return err == nil, out
}

// learn runs each test by itself, and returns those that reach a mutant.
func (t *tester) learn(ctx context.Context) ([]test, error) {
	_, out := t.run(ctx, "^$") // the program works
	//nolint:gosec // the test binary that this command has built
	list := exec.CommandContext(ctx, t.program, "-test.list", ".*")
	list.Dir = t.dir
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests: %w\n%s", err, out)
	}
	var tests []test
	var failed []string
	var mu sync.Mutex
	t.each(len(strings.Fields(string(names))), func(i int) {
		name := strings.Fields(string(names))[i]
		if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") && !strings.HasPrefix(name, "Example") {
			return
		}
		trace := filepath.Join(t.scratch, "trace-"+name)
		begun := time.Now()
		passed, out := t.run(ctx, "^"+name+"$", "MUTANT_TRACE="+trace)
		learned := test{name: name, took: time.Since(begun), reaches: map[int]bool{}}
		reached, _ := os.ReadFile(trace) //nolint:gosec // in the scratch folder
		for _, id := range bytes.Fields(reached) {
			n, _ := strconv.Atoi(string(id))
			learned.reaches[n] = true
		}
		mu.Lock()
		defer mu.Unlock()
		if !passed {
			failed = append(failed, name+"\n"+string(out))
		} else if len(learned.reaches) > 0 {
			tests = append(tests, learned)
		}
	})
	slices.SortFunc(tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	for _, f := range failed {
		fmt.Fprintln(os.Stderr, "not used, since it fails without a mutant:", f)
	}
	return tests, nil
}

// survivors returns the mutants that no test kills, and those that no test reaches.
func (t *tester) survivors(ctx context.Context, tests []test) (survived, unreached []mutant) {
	var mu sync.Mutex
	t.each(len(t.mutants), func(i int) {
		m := t.mutants[i]
		var names []string
		for _, test := range tests {
			if test.reaches[m.id] {
				names = append(names, test.name)
			}
		}
		killed := false
		for chunk := range slices.Chunk(names, 12) {
			if killed || ctx.Err() != nil {
				break
			}
			passed, _ := t.run(ctx, "^("+strings.Join(chunk, "|")+")$", "MUTANT="+strconv.Itoa(m.id))
			killed = !passed
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case len(names) == 0:
			unreached = append(unreached, m)
		case !killed:
			survived = append(survived, m)
		}
	})
	byID := func(a, b mutant) int { return a.id - b.id }
	slices.SortFunc(survived, byID)
	slices.SortFunc(unreached, byID)
	return survived, unreached
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
