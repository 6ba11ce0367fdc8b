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
	limit := flag.Duration("limit", time.Minute, "how long the tests of a mutant may take: longer counts as killed")
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
	survived, unreached := t.survivors(ctx, tests)
	for _, m := range survived {
		fmt.Printf("survived   %s: %s: %s\n", m.where, m.what, m.line)
	}
	for _, m := range unreached {
		fmt.Printf("unreached  %s: %s: %s\n", m.where, m.what, m.line)
	}
	killed := len(t.mutants) - len(survived) - len(unreached)
	fmt.Printf("%s: %d of %d mutants killed (%.1f %%), %d survived, %d reached by no test, seed %d, %v\n", dir, killed, len(t.mutants),
		100*float64(killed)/float64(len(t.mutants)), len(survived), len(unreached), seed, time.Since(begun).Round(time.Second))
	return ctx.Err()
}
