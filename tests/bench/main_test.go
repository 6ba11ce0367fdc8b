package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	testsuite "github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/bench/internal/jobprocess"
)

// TestMain runs the tests, or the job of a child that a test has started.
func TestMain(m *testing.M) {
	if jobprocess.IsChild() {
		os.Exit(runChild())
	}
	testsuite.Main(m)
}

// A suite of each kind runs, as short as possible, from the servers to the pictures.
func TestProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := runSuites(t, dir, "^(lone|keys-256-cluster|hot-4x16|burst-4x32|permits-(waiters-128|10x1)|shared-4x16-1ms|replicas-keys-64|idempotent-.*)$",
		"one goroutine, one key\n", "on a Redis Cluster of 3 masters", "4 processes of 16 goroutines, one key, empty section\n",
		"128 goroutines of one process", "8 permits", "90 % of the turns read", "on a master with 2 replicas", "32 clients, one key", "memory/answer")
	if !regexp.MustCompile(`(?m)^reqlock +[\d,]+ +100 % +2\.00 .* [1-9]\d*\.\d$`).MatchString(out) {
		t.Error("no lock of one goroutine has two commands, and allocations:\n" + out)
	}
	if _, err := os.Stat(filepath.Join(dir, "hot-handoffs.svg")); err != nil {
		t.Error(err)
	}
}

// Beside the other suites, because a server votes in a quorum after the TTL of a lock only.
func TestProgramOnAQuorum(t *testing.T) {
	t.Parallel()
	runSuites(t, "", "^quorum-3-keys-64$", "on 3 servers of a quorum")
}

// runSuites runs suites, and checks that they print some texts. It returns what they print.
func runSuites(t *testing.T, pictures, names string, wants ...string) string {
	t.Helper()
	redistest.Program(t)
	var out, progress bytes.Buffer
	p := program{out: &out, progress: &progress, window: 50 * time.Millisecond, repetitions: 1, rounds: 1, pictures: pictures}
	if err := p.run(t.Context(), names); err != nil {
		t.Errorf("%v\n%s", err, progress.String())
	}
	for _, want := range wants {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed:\n%s", want, &out)
		}
	}
	return out.String()
}
