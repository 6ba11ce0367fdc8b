package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const product = `package product

var calls int

func Sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

func Half(n int) int {
	calls++
	return n / 2
}

func Unused(a, b int) int { return a + b }

func Count(to int) (n int) {
	for n < to {
		n++
	}
	return n
}

func Late(a, b int) int { return a - b }
`

// TestLate fails only in its first run, as a test may on a busy machine.
const tests = `package product

import (
	"os"
	"testing"
)

func TestSign(t *testing.T) {
	if Sign(0) != 1 {
		t.Error("no")
	}
}

func TestHalf(t *testing.T) {
	if Half(4) != 2 {
		t.Error("no")
	}
}

func TestCount(t *testing.T) {
	if Count(3) != 3 {
		t.Error("no")
	}
}

func TestLate(t *testing.T) {
	if _, err := os.Stat("failed"); Late(2, 1) != 1 && err != nil {
		_ = os.WriteFile("failed", nil, 0o600)
		t.Error("no")
	}
}
`

func TestOutcomes(t *testing.T) {
	t.Parallel()
	dir, scratch := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"go.mod": "module product\n\ngo 1.26.0\n", "product.go": product, "product_test.go": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	under, err := instrument(dir, scratch, 400, 1)
	if err != nil {
		t.Fatal(err)
	}
	run := tester{instrumented: under, scratch: scratch, workers: 2, limit: 2 * time.Second}
	if err := run.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	reaching, err := run.learn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]outcome{}
	for i, o := range run.outcomes(t.Context(), reaching) {
		got[run.mutants[i].line+": "+run.mutants[i].what] = o
	}
	want := map[string]outcome{
		"if n < 0 {: bound of <": killed,
		"calls++: left out":      survived,
		"func Unused(a, b int) int { return a + b }: other than +": unreached,
		"for n < to {: bound of <":                                 killed,
		"n++: left out":                                            hung,
		"func Late(a, b int) int { return a - b }: other than -":   unstable,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
