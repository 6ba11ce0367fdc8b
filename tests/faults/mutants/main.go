// Command mutants tests the tests: it makes deliberate mistakes in the lock, one at a time,
// and reports which of them are found. It runs in the folder tests/faults:
//
//	go run ./mutants                                    the mistakes of mutants/*.diff, found by the fault campaign
//	go run ./mutants -run fence -seed 1                 some of them
//	go run ./mutants -run fence ../../internal/engine   the same, found by the tests of a package
//	go run ./mutants -sample 40 ../../internal/engine   changes of a package at random, found by its own tests
//
// No file of the product changes: the compiler gets an overlay. The exit code is 0 if all
// mutants were found, and 1 otherwise. A survivor of a sample is not always a gap in the
// tests: a reader must judge whether the change matters.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A finder tells by what a mutant was found, or returns "". It may write into the directory.
type finder func(ctx context.Context, m mutant, dir string) (by string, err error)

func main() {
	names := flag.String("run", "", "only mistakes whose names match this `regexp`")
	count := flag.Int("sample", 0, "make this many changes of the package at random instead")
	tests := flag.String("test", "", "only tests of the package whose names match this `regexp`")
	seed := flag.Uint64("seed", 1, "the seed of the first run of the campaign, or of the sample")
	parallel := flag.Int("parallel", 3, "how many mutants are tested at a time")
	limit := flag.Duration("limit", 5*time.Minute, "how long the tests of a package may take; a mutant that makes them hang is found")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	all, find, err := choose(ctx, *names, *count, *tests, *seed, *limit, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2) //nolint:gocritic // nothing is left to stop
	}
	fmt.Printf("seed %d: %d mutants\n", *seed, len(all))
	if !testAll(ctx, all, find, *parallel) || ctx.Err() != nil {
		os.Exit(1)
	}
}

// choose returns the mutants of a command line, and what has to find them.
func choose(ctx context.Context, names string, count int, tests string, seed uint64, limit time.Duration, args []string) ([]mutant, finder, error) {
	pattern, err := regexp.Compile(names)
	if err != nil {
		return nil, nil, err
	}
	tree, err := findTree(ctx)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case len(args) > 1, count > 0 && len(args) != 1, tests != "" && len(args) != 1:
		return nil, nil, fmt.Errorf("%q: name one package with -sample and -test, and at most one otherwise", args)
	case count > 0:
		all, err := sample(args[0], count, seed)
		return all, packageTests{args[0], tests, limit}.find, err
	case len(args) == 1:
		all, err := load(tree, pattern)
		return all, packageTests{args[0], tests, limit}.find, err
	default:
		all, err := load(tree, pattern)
		return all, campaignFinder{tree, seed}.find, err
	}
}

// testAll tests all mutants, some at a time, and prints each result. It reports whether all
// were found.
func testAll(ctx context.Context, all []mutant, find finder, parallel int) bool {
	var mu sync.Mutex
	found, tried, next := 0, len(all), make(chan mutant)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for m := range next {
				begun := time.Now()
				by, dir, err := testOne(ctx, m, find)
				mu.Lock()
				line := fmt.Sprintf("%-34s %5.0fs  ", m.name, time.Since(begun).Seconds())
				switch {
				case ctx.Err() != nil:
					line += "interrupted"
				case errors.Is(err, errDoesNotCompile) && m.checks == "": // no mutant
					tried--
					line += err.Error()
				case err != nil:
					line += err.Error()
				case by == "":
					line += "SURVIVED: " + m.mistake
				default:
					found++
					line += "found by " + by
				}
				fmt.Println(line)
				if dir != "" {
					fmt.Println("    kept in", dir)
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range all {
		if ctx.Err() == nil {
			next <- m
		}
	}
	close(next)
	workers.Wait()
	fmt.Printf("%d of %d found\n", found, tried)
	return found == tried
}

// testOne tests a mutant in a directory of its own, and keeps the directory if the mutant
// was not found.
func testOne(ctx context.Context, m mutant, find finder) (by, kept string, err error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return "", "", err
	}
	by, err = find(ctx, m, dir)
	if left, _ := filepath.Glob(filepath.Join(dir, "out", "*")); by == "" && ctx.Err() == nil && len(left) > 0 {
		return by, dir, err
	}
	return by, "", errors.Join(err, os.RemoveAll(dir))
}

// firstLine returns the first line of a text that contains a part, without white space
// around it.
func firstLine(text []byte, part string) string {
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, part) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
