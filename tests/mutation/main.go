package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	n := flag.Int("n", 400, "how many `mutants` to try in each package")
	seed := flag.Uint64("seed", 1, "which mutants to choose")
	workers := flag.Int("workers", 3, "how many mutants to try at a time")
	limit := flag.Duration("limit", time.Minute, "how long the tests of a mutant may take beyond five times their usual time: longer counts as killed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, dir := range flag.Args() {
		if err := try(ctx, dir, *n, *seed, tester{workers: *workers, limit: *limit}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			stop()
			os.Exit(1) //nolint:gocritic // stop was called
		}
	}
}

// try tries the mutants of one package, and prints what it found.
func try(ctx context.Context, dir string, n int, seed uint64, t tester) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if t.scratch, err = os.MkdirTemp("", "mutation"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(t.scratch) }()
	begun := time.Now()
	if t.instrumented, err = instrument(absolute, t.scratch, n, seed); err != nil {
		return err
	}
	if err := t.build(ctx); err != nil {
		return err
	}
	tests, err := t.learn(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d mutants, %d tests reach them (%v)\n", dir, len(t.mutants), len(tests), time.Since(begun).Round(time.Second))
	count := make(map[outcome]int)
	labels := map[outcome]string{unstable: "unstable", survived: "survived", unreached: "unreached"}
	for i, o := range t.outcomes(ctx, tests) {
		count[o]++
		if label := labels[o]; label != "" {
			fmt.Printf("%-9s  %s: %s: %s\n", label, t.mutants[i].where, t.mutants[i].what, t.mutants[i].line)
		}
	}
	dead, tried := count[killed]+count[hung], len(t.mutants)-count[untried]
	fmt.Printf("%s: %d of %d mutants killed (%.1f %%), %d of them by a time-out; %d unstable, %d survived, %d reached by no test; seed %d, %v\n",
		dir, dead, tried, 100*float64(dead)/float64(tried), count[hung], count[unstable], count[survived],
		count[unreached], seed, time.Since(begun).Round(time.Second))
	return ctx.Err()
}
